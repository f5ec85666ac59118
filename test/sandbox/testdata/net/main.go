// Command net lists the machine's network interfaces and sends itself a line
// over 127.0.0.1, without a C library.
package main

import (
	"fmt"
	"io"
	"log"
	"net"
	"strings"
)

func main() {
	interfaces, err := net.Interfaces()
	if err != nil {
		log.Fatal(err)
	}
	for _, i := range interfaces {
		if i.Flags&net.FlagLoopback == 0 || i.Flags&net.FlagUp == 0 {
			continue
		}
		addrs, err := i.Addrs()
		if err != nil {
			log.Fatal(err)
		}
		var all []string
		for _, a := range addrs {
			all = append(all, a.String())
		}
		fmt.Println(i.Name, "up loopback", strings.Join(all, " "))
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	go func() {
		c, err := l.Accept()
		if err != nil {
			log.Fatal(err)
		}
		fmt.Fprint(c, "sent and received")
		c.Close()
	}()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		log.Fatal(err)
	}
	line, err := io.ReadAll(c)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(string(line))
}
