package hosts

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	for in, want := range map[string]string{
		"api.github.com:443":         "api.github.com:443",
		"API.GitHub.com:443":         "api.github.com:443",
		"xn--bcher-kva.example:8080": "xn--bcher-kva.example:8080",
		"1.example.com:80":           "1.example.com:80",
	} {
		got, err := Parse(in)
		if err != nil || got.String() != want {
			t.Errorf("Parse(%q) = %v, %v, want %s", in, got, err, want)
		}
	}
	for _, in := range []string{
		"", "example.com", "example.com:", "example.com:0", "example.com:65536", "example.com:0443", "example.com:+443", "example.com:443 ", "example.com:http",
		"localhost:443", "example.com.:443", ".example.com:443", "a..b:443", "-a.example:443", "a-.example:443", "a_b.example:443", "*.example.com:443",
		"127.0.0.1:443", "0x7f.1:443", "0177.0.0.1:443", "2130706433:443", "1.1:80", "[::1]:443", "::1:443", "a.example:443:443",
		"bücher.example:443", "ＥＸＡＭＰＬＥ.com:443", "exam\u200bple.com:443", "\u212a.example.com:443", "user@example.com:443", "http://example.com:443", "example.com/a:443",
		strings.Repeat("a", 64) + ".example:443", strings.Repeat("a.", 127) + "com:443",
	} {
		if got, err := Parse(in); err == nil {
			t.Errorf("Parse(%q) = %v, want an error", in, got)
		}
	}
}

func TestPublic(t *testing.T) {
	for _, in := range []string{"1.1.1.1", "8.8.8.8", "2606:4700:4700::1111", "::ffff:1.1.1.1", "64:ff9b::101:101"} {
		if !Public(netip.MustParseAddr(in)) {
			t.Errorf("Public(%s) = false", in)
		}
	}
	for _, in := range []string{
		"127.0.0.1", "127.1.2.3", "0.0.0.0", "0.1.2.3", "10.0.0.1", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1", "192.0.0.1", "192.0.2.1",
		"198.18.0.1", "198.51.100.1", "203.0.113.1", "224.0.0.1", "240.0.0.1", "255.255.255.255",
		"::", "::1", "::ffff:127.0.0.1", "::127.0.0.1", "::ffff:10.0.0.1", "64:ff9b::7f00:1", "64:ff9b::a00:1", "64:ff9b:1::1", "fe80::1", "fc00::1", "fd00::1", "ff02::1",
		"fec0::1", "2001::1", "2001:db8::1", "2002:7f00:1::", "100::1", "3fff::1", "fe80::1%eth0",
		"168.63.129.16", "4000::1", "::ffff:0:7f00:1",
	} {
		if Public(netip.MustParseAddr(in)) {
			t.Errorf("Public(%s) = true", in)
		}
	}
}

func ExampleParse() {
	h, _ := Parse("API.GitHub.com:443")
	_, err := Parse("127.0.0.1:443")
	fmt.Println(h)
	fmt.Println(err)
	// Output:
	// api.github.com:443
	// the name is an address; a host is named
}
