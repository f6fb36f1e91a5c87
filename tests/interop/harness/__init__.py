"""What the interop and chaos tests share: processes, ports, the place programs run at, leak checks, the report."""
