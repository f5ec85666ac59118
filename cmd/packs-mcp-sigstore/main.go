// Packs-mcp-sigstore verifies and creates the Sigstore bundles of packs for packs-mcp,
// which starts it. It reads a question or an order from standard input and writes a verdict
// or a bundle to standard output, as the JSON that package trust defines.
//
// It reads no file and no environment variable, and uses no network. A verdict depends only
// on the question, and on the certificates and logs of Sigstore's public service, which are
// part of the program.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/packs-mcp/packs-mcp/internal/sources/trust"
)

func main() {
	os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	if len(args) > 0 {
		fmt.Fprintln(stderr, "packs-mcp-sigstore checks and makes the Sigstore signatures of packs. packs-mcp starts it; there is nothing to call it for.")
		return 2
	}
	if err := answer(stdin, stdout); err != nil {
		fmt.Fprintln(stderr, "packs-mcp-sigstore: error:", err)
		return 1
	}
	return 0
}

func answer(stdin io.Reader, stdout io.Writer) error {
	data, err := io.ReadAll(io.LimitReader(stdin, trust.MaxQuestion+1))
	if err != nil {
		return fmt.Errorf("reading the question: %w", err)
	}
	if len(data) > trust.MaxQuestion {
		return errors.New("the question is too long")
	}
	order, ok, err := trust.ParseOrder(data)
	if err != nil {
		return fmt.Errorf("reading the order: %w", err)
	}
	if ok {
		p, err := sign(order)
		if err != nil {
			return err
		}
		return reply(stdout, func() ([]byte, error) { return order.Answer(p) })
	}
	q, err := trust.ParseQuestion(data)
	if err != nil {
		return fmt.Errorf("reading the question: %w", err)
	}
	v, err := judge(q)
	if err != nil {
		return err
	}
	return reply(stdout, func() ([]byte, error) { return q.Answer(v) })
}

func reply(stdout io.Writer, answer func() ([]byte, error)) error {
	out, err := answer()
	if err != nil {
		return err
	}
	_, err = stdout.Write(out)
	return err
}
