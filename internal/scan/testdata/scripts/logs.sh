#!/bin/bash
# Count the errors of the last hour, by kind.
since=$(date -d '1 hour ago' +%s)
journalctl --since "@$since" -o cat -u web | grep -Eo 'ERROR [A-Z_]+' | sort | uniq -c | sort -rn | head -20
ss -tlnp
ps aux --sort=-%mem | head -5
df -h / /var
