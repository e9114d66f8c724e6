"""Proxies before an S3 server, with what Debian's packages of them compress: nginx and Apache."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from rowferry_lab.servers.s3_servers import S3Server
from support.s3.servers.own import OneProgram

NGINX = """\
daemon off;
pid {folder}/pid;
error_log stderr;
user root;
worker_processes 1;
events {{ worker_connections 256; }}
http {{
    include /etc/nginx/mime.types;
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    client_max_body_size 0;
    gzip on;
    server {{
        listen 127.0.0.1:{port};
        location / {{
            proxy_pass {upstream};
            proxy_http_version 1.1;
            proxy_set_header Host $http_host;
        }}
    }}
}}
"""
"""`gzip on` is how Debian's nginx.conf has it: text/html is compressed, and nothing else."""

MODULES = ("mpm_event", "authz_core", "filter", "deflate", "proxy", "proxy_http")
APACHE = """\
ServerRoot {folder}
PidFile {folder}/pid
DefaultRuntimeDir {folder}
ServerName localhost
ErrorLog {folder}/error.log
Listen 127.0.0.1:{port}
{modules}
Include /etc/apache2/mods-available/deflate.conf
AllowEncodedSlashes NoDecode
MergeSlashes Off
ProxyPreserveHost On
ProxyPass / {upstream}/ nocanon
"""


class CompressingProxy(OneProgram):
    """Stands for the server behind it, with its credentials."""

    def __init__(self, upstream: S3Server, *, owned: bool = False) -> None:
        """`upstream` is running, or is started and closed with the proxy that has it as its own.

        Raises NotInstalled where there is no such program.
        """
        super().__init__()
        self._upstream, self._owned = upstream, owned
        self.access_key, self.secret_key = upstream.access_key, upstream.secret_key

    def start(self) -> None:
        if self._owned:
            self._upstream.start()
        super().start()

    def close(self) -> None:
        super().close()
        if self._owned:
            self._upstream.close()

    def write_config(self, port: int, folder: Path, text: str, **values: str) -> Path:
        config = folder / f"{self.name}.conf"
        config.write_text(text.format(port=port, folder=folder, upstream=self._upstream.endpoint_url, **values))
        return config


class NginxProxy(CompressingProxy):
    name = program = "nginx"
    advice = "Debian's package `nginx-light` has it"

    def command(self, port: int, folder: Path) -> Sequence[str]:
        config = self.write_config(port, folder, NGINX)
        return [self.path, "-c", str(config), "-p", str(folder), "-e", "stderr"]


class ApacheProxy(CompressingProxy):
    name, program = "apache", "apache2"
    advice = "Debian's package `apache2` has it"

    def command(self, port: int, folder: Path) -> Sequence[str]:
        loads = "\n".join(f"LoadModule {name}_module /usr/lib/apache2/modules/mod_{name}.so" for name in MODULES)
        config = self.write_config(port, folder, APACHE, modules=loads)
        return [self.path, "-DFOREGROUND", "-f", str(config)]


PROXIES: Mapping[str, type[CompressingProxy]] = {"nginx": NginxProxy, "apache": ApacheProxy}
