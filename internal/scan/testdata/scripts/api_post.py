"""Create an issue with the REST API. The token comes from GITHUB_TOKEN."""
import json
import os
import sys
import urllib.request

token = os.environ.get("GITHUB_TOKEN")
if not token:
    sys.exit("Set GITHUB_TOKEN to a token that may create issues.")
repo, title, body = sys.argv[1:4]
req = urllib.request.Request(
    f"https://api.github.com/repos/{repo}/issues",
    data=json.dumps({"title": title, "body": body}).encode(),
    headers={"Authorization": f"Bearer {token}", "Accept": "application/vnd.github+json"},
)
with urllib.request.urlopen(req) as res:
    print(json.load(res)["html_url"])
