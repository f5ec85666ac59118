package internet

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
)

// Reach tries to reach other hosts in the ways that args name, and prints a line for each. It
// returns the exit status.
func Reach(args []string) int {
	for i := 0; i+1 < len(args); i += 2 {
		how, what := args[i], args[i+1]
		fmt.Printf("%s %s: %s\n", how, what, strings.TrimSpace(tryTo(how, what)))
	}
	return 0
}

func tryTo(how, what string) string {
	why := func(err error) string {
		for {
			inner := errors.Unwrap(err)
			if inner == nil {
				return err.Error()
			}
			err = inner
		}
	}
	switch how {
	case "get":
		resp, err := http.Get(what)
		if err != nil {
			return why(err)
		}
		defer resp.Body.Close()
		body, _ := io.ReadAll(resp.Body)
		return fmt.Sprint(resp.StatusCode, " ", string(body))
	case "look-up":
		_, err := net.LookupHost(what + ".")
		if err != nil {
			return why(err)
		}
	case "listen":
		ln, err := net.Listen("tcp4", what)
		if err != nil {
			return why(err)
		}
		_ = ln.Close()
	default:
		conn, err := net.Dial(how, what)
		if err != nil {
			return why(err)
		}
		if _, err := conn.Write([]byte("x")); err != nil {
			return why(err)
		}
		_ = conn.Close()
	}
	return "ok"
}
