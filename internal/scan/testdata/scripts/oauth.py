"""Get an access token with the client credentials of an application.

The client sends its client_id and client_secret in the body of the request to the
authorization server, which returns an access token. All tokens are sent to the server
over https. Decrypt the file with the settings, and run this module.
"""
import os

import requests


def token(url):
    # Send the credentials in the body: the server of this API wants them there.
    res = requests.post(url, data={
        "grant_type": "client_credentials", "client_id": os.environ["CLIENT_ID"], "client_secret": os.environ["CLIENT_SECRET"],
    }, timeout=30)
    res.raise_for_status()
    return res.json()["access_token"]
