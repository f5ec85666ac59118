// Command greeter is the tool of a test's pack: it greets the people in its arguments, leaves
// a file in its working folder, and says whether it can see one of the server's keys.
//
// With the one argument "stay" it does nothing for ten minutes: while a program runs, Wine's
// own services keep running.
package main

import (
	"fmt"
	"os"
	"strings"
	"time"
)

func main() {
	if len(os.Args) == 2 && os.Args[1] == "stay" {
		time.Sleep(10 * time.Minute)
		return
	}
	fmt.Printf("Hello, %s!\n", strings.Join(os.Args[1:], " and "))
	if _, ok := os.LookupEnv("SOME_API_KEY"); ok {
		fmt.Println("And thank you for the key.")
	}
	if err := os.WriteFile("greeted.txt", []byte(strings.Join(os.Args[1:], "\n")+"\n"), 0o600); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
