"""Evaluate the answers of a model against what is expected."""
import ast
import json
import re
import sys

import anthropic

client = anthropic.Anthropic()  # the key is in ANTHROPIC_API_KEY


def number(text):
    m = re.search(r"<answer>(.*?)</answer>", text, re.S)
    return ast.literal_eval(m.group(1)) if m else None


def ask(question):
    # The system prompt tells the model how to answer; the user's question follows.
    res = client.messages.create(model="claude-x", max_tokens=1000, system="Answer between <answer> and </answer>.", messages=[{"role": "user", "content": question}])
    return res.content[0].text


if __name__ == "__main__":
    cases = json.load(open(sys.argv[1]))
    good = sum(number(ask(c["q"])) == c["a"] for c in cases)
    print(f"{good}/{len(cases)}")
