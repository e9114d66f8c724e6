select path from public.avatars
