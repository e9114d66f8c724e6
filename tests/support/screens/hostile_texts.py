"""Texts that mean harm to a page: HTML, a secret, marks of direction."""

HOSTILE = "</script></style></pre><script>alert(1)</script><img src=x onerror=alert(1)>{{ 7 * 7 }}"
SECRET = "wJalrXUtnFEMI/K7MDENG"
BIDI = "\u202egnp.exe שלום"
