#!/usr/bin/env python3
"""Start one or more servers, wait for their ports, run a command, and stop the servers."""
import argparse
import socket
import subprocess
import sys
import time


def is_ready(port, timeout=30):
    begin = time.time()
    while time.time() - begin < timeout:
        try:
            with socket.create_connection(("localhost", port), timeout=1):
                return True
        except OSError:
            time.sleep(0.5)
    return False


def main():
    parser = argparse.ArgumentParser(description="Run a command with servers")
    parser.add_argument("--server", action="append", required=True)
    parser.add_argument("--port", action="append", type=int, required=True)
    parser.add_argument("command", nargs=argparse.REMAINDER)
    args = parser.parse_args()
    running = []
    try:
        for cmd, port in zip(args.server, args.port):
            running.append(subprocess.Popen(cmd, shell=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE))
            if not is_ready(port):
                raise RuntimeError(f"Server failed to start on port {port}")
        sys.exit(subprocess.run(args.command).returncode)
    finally:
        for p in running:
            p.terminate()


if __name__ == "__main__":
    main()
