#!/bin/sh
echo "hello $1"
echo made > made.txt
