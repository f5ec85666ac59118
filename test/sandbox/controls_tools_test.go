//go:build unix

package sandbox_test

import (
	"bufio"
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/sandbox"
)

// shell returns a control with an sh script that needs other programs.
func shell(name, script, prints string, programs ...string) control {
	return control{name: name, programs: append([]string{"sh"}, programs...), args: []string{"-ec", script}, prints: prints}
}

func toolControls() []control {
	identity := []string{"GIT_AUTHOR_NAME=A", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=A", "GIT_COMMITTER_EMAIL=a@example.com"}
	git := shell("git", `git init -q -b main; echo one > f; git add f; git commit -q -m first; echo two >> f; git commit -qam second
git log --format=%s; git diff HEAD~1 --shortstat; git gc -q; git fsck 2>/dev/null; git stash list; git worktree add -q ../workspace/w; git status --short --untracked-files=no`,
		"second\nfirst\n 1 file changed, 1 insertion(+)", "git")
	git.env = identity
	clone := shell("git clone", `git init -q src; cd src; echo x > f; git add f; git commit -q -m x; cd ..; git clone -q src dst; git clone -q --bare "file://$PWD/src" bare; cat dst/f; git -C bare rev-list --count HEAD`,
		"x\n1", "git")
	clone.env = identity

	return []control{
		git, clone,
		{name: "jq", programs: []string{"jq"}, args: []string{"-c", `[.a[] | select(. > 1)] | add`}, stdin: `{"a": [1, 2, 3]}`, prints: "5"},
		shell("tar and gzip", `mkdir d; echo data > d/f; ln -s f d/l; tar czf d.tgz d; mkdir out; tar xzf d.tgz -C out; cat out/d/l; gzip -l d.tgz | wc -l; tar cf - d | tar tf - | sort`,
			"data\n2\nd/\nd/f\nd/l", "tar", "gzip"),
		shell("zip", `echo data > f; zip -q f.zip f; rm f; unzip -q f.zip; cat f`, "data", "zip", "unzip"),
		largeSort(),
		{
			name: "awk", programs: []string{"awk"}, args: []string{`{ s += $1; print $1 | "sort -n" } END { close("sort -n"); print s }`},
			stdin: "3\n1\n2\n", prints: "1\n2\n3\n6",
		},
		shell("sed in place", `printf 'a\nb\n' > f; sed 's/a/x/' f > g; sed -i.bak 's/b/y/' f; cat f g`, "a\ny\nx\nb", "sed"),
		shell("find -exec", `mkdir -p a/b; echo 1 > a/f.txt; echo 2 > a/b/g.txt; find a -name '*.txt' -exec cat {} + | sort; find a -type f -delete; find a -type f | wc -l | tr -d ' '`,
			"1\n2\n0", "find"),
		shell("xargs -P", `seq 40 | xargs -P 8 -n 1 sh -c 'echo $(($1 * 2)) > n$1' x; cat n* | awk '{ s += $1 } END { print s }'`, "1640", "xargs", "seq", "awk"),
		{name: "openssl dgst", programs: []string{"openssl"}, args: []string{"dgst", "-sha256"}, stdin: "x", matches: "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881$"},
		shell("openssl keys", `openssl genpkey -algorithm ed25519 -out k.pem; openssl pkey -in k.pem -pubout | head -1; openssl rand -hex 4 | wc -c | tr -d ' '`,
			"-----BEGIN PUBLIC KEY-----\n9", "openssl"),
		zones(),
		shell("locale", `locale | head -1 | cut -d= -f1; locale -a | grep -x C`, "LANG\nC", "locale"),
		shell("mktemp", `f=$(mktemp); echo x > "$f"; d=$(mktemp -d); touch "$d/y"; cat "$f"; ls "$d"; rm -r "$f" "$d"`, "x\ny", "mktemp"),
		{name: "nproc", programs: []string{"nproc"}, matches: `^[1-9]\d*$`},
		shell("ps", `ps -o comm= -p $$; ps -e | grep -c -w ps; ps aux >/dev/null`, "sh\n1", "ps", "grep"),
		shell("id and whoami", `test "$(id -u)" = "$(stat -c %u .)"; test "$(whoami)" = "$(id -un)"; echo same`, "same", "id", "whoami", "stat"),
		{name: "curl --version", programs: []string{"curl"}, args: []string{"--version"}, matches: `^curl \d`},
		{
			name: "curl of a file", programs: []string{"curl"}, run: "sh", args: []string{"-c", `curl -sS "file://$PACKS_PACK_DIR/page.html"`},
			pack: map[string]string{"page.html": "<p>page</p>\n"}, prints: "<p>page</p>",
		},
		shell("ssh-keygen", `ssh-keygen -q -t ed25519 -N '' -C someone -f ./key; cut -d' ' -f1,3 key.pub; ssh-keygen -lf key.pub >/dev/null; echo text | ssh-keygen -q -Y sign -n file -f key - | head -1`,
			"ssh-ed25519 someone\n-----BEGIN SSH SIGNATURE-----", "ssh-keygen"),
		{
			name: "sqlite3", programs: []string{"sqlite3"}, args: []string{"data.db"}, prints: "2|3",
			stdin: ".mode list\ncreate table t(x);\ninsert into t values(1),(2);\nselect count(*), sum(x) from t;\n",
			check: artifact("data.db", 4096),
		},
		shell("diff and patch", `printf 'a\nb\n' > old; printf 'a\nc\n' > new; diff -u old new > d || true; patch -s old d; cmp old new; echo same`, "same", "diff", "patch", "cmp"),
		shell("flock", `flock lock sh -c 'echo held'; (flock -n 9 && echo again) 9>lock`, "held\nagain", "flock"),
		shell("coreutils", `seq 1000 | tac | sort -n | uniq | tail -1; printf abc | md5sum | cut -c1-8; du -s . >/dev/null; df . >/dev/null; stat -c %a . ; basename "$(pwd -P)"; nice -n 5 true; timeout 5 true; env -i sh -c 'echo env'; uname >/dev/null`,
			"1000\n90015098\n700\nworkspace\nenv", "tac", "md5sum", "timeout", "stat"),
		shell("devices", `head -c 1000 /dev/zero | wc -c | tr -d ' '; head -c 16 /dev/urandom | wc -c | tr -d ' '; echo gone > /dev/null; { echo x > /dev/full; } 2>/dev/null || echo full; echo out > /dev/stdout; echo err > /dev/stderr; dd if=/dev/zero of=f bs=1024 count=8 2>/dev/null; wc -c < f | tr -d ' '`,
			"1000\n16\nfull\nout\n8192", "dd"),
	}
}

// zones returns a control that shows a date in another time zone.
func zones() control {
	c := shell("date with TZ", `TZ=Asia/Tokyo date -d @0 '+%F %H:%M %z'; date -u -d @0 +%s`, "1970-01-01 09:00 +0900\n0", "date")
	c.prepare = func(t *testing.T, _ *place) {
		if runtime.GOOS != "linux" {
			t.Skip("date has no -d on this system")
		}
		if _, err := os.Stat("/usr/share/zoneinfo/Asia/Tokyo"); err != nil {
			skip(t, "tzdata", "there is no /usr/share/zoneinfo/Asia/Tokyo")
		}
	}
	return c
}

// largeSort returns a control that sorts more than sort keeps in memory, so that it
// needs files in TMPDIR.
func largeSort() control {
	size := 96 << 20
	if testing.Short() {
		size = 8 << 20
	}
	c := shell("sort of a large file", `LC_ALL=C sort -S 16M -o sorted "$PACKS_PACK_DIR/large"; LC_ALL=C sort -c sorted; wc -c < sorted | tr -d ' '`, fmt.Sprint(size), "sort")
	c.limits = sandbox.Limits{Timeout: 5 * time.Minute}
	c.prepare = func(t *testing.T, p *place) {
		f, err := os.Create(filepath.Join(p.pack, "large"))
		if err != nil {
			t.Fatal(err)
		}
		w := bufio.NewWriterSize(f, 1<<20)
		r := rand.New(rand.NewPCG(1, 2))
		line := make([]byte, 128)
		line[len(line)-1] = '\n'
		for range size / len(line) {
			for i := range 16 {
				line[i] = 'a' + byte(r.UintN(26))
			}
			copy(line[16:len(line)-1], bytes.Repeat(line[:1], len(line)))
			_, _ = w.Write(line) // Flush returns any error
		}
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	c.check = artifact("sorted", int64(size))
	return c
}

func shellControls() []control {
	odd := []string{"ünïcødé 雨.txt", "-rf", "with space", "quote'\"", "new\nline", "*", "e\u0301", "\x01", strings.Repeat("n", 255)}
	oddFiles := map[string]string{}
	for _, name := range odd {
		oddFiles["in/"+name] = name
	}
	if runtime.GOOS == "linux" {
		oddFiles["in/\xff\xfe"] = "bytes" // other systems require UTF-8
	}
	left := map[string]string{}
	for name, text := range oddFiles {
		left["out/"+strings.TrimPrefix(name, "in/")] = text
	}
	return []control{
		shell("pipe of three", `seq 100000 | grep 7 | wc -l | tr -d ' '`, "40951", "seq", "grep"),
		{name: "cat of stdin", programs: []string{"cat"}, stdin: count(5000, "a line of input that is long enough to fill a pipe"), check: func(t *testing.T, _ *place, res *sandbox.Result) {
			if want := int64(len(count(5000, "a line of input that is long enough to fill a pipe"))); res.Stdout.Total != want {
				t.Errorf("cat printed %d bytes, want %d", res.Stdout.Total, want)
			}
		}},
		{
			name: "odd file names", programs: []string{"sh", "cp"}, args: []string{"-ec", `mkdir out; cd in; for f in *; do cp -- "$f" "../out/$f"; done; ls | wc -l >/dev/null`},
			workspace: oddFiles, leaves: left,
		},
		{
			name: "1,000 files", programs: []string{"sh", "seq"}, args: []string{"-ec", `mkdir d; for i in $(seq 1000); do echo $i > d/$i; done; ls d | wc -l | tr -d ' '`},
			prints: "1000", check: all(artifact("d/1", 2), func(t *testing.T, _ *place, res *sandbox.Result) {
				if n := len(res.Artifacts) + res.MoreArtifacts; n != 1000 {
					t.Errorf("%d artifacts, want 1000", n)
				}
			}),
		},
		{
			name: "bash with process substitution", programs: []string{"bash"}, prints: "2\nmore\nx\n3\nHERE",
			args: []string{"-ec", `diff <(echo a) <(echo a) && comm -12 <(printf '1\n2\n') <(printf '2\n3\n'); echo more > >(cat); wait $!; cat <<< x; mapfile -t a < <(seq 3); echo ${#a[@]}; cat <<EOF
HERE
EOF`},
		},
		{
			name: "shell script of the pack", run: "./scripts/run.sh", programs: []string{"sh"}, args: []string{"one", "two words"},
			pack: map[string]string{
				"scripts/run.sh":    "#!/bin/sh\nset -eu\n. \"$(dirname \"$0\")/common.sh\"\nsay \"$@\"\ntouch made\nls \"$PACKS_PACK_DIR\"\n",
				"scripts/common.sh": "say() { for a; do echo \"<$a>\"; done; }\n",
			},
			prints: "<one>\n<two words>\nscripts", leaves: map[string]string{"made": ""},
		},
		shell("background job", `(exit 4) & wait $! || echo $?; trap 'echo trapped' USR1; kill -USR1 $$; sh -c 'kill -TERM $$' || echo $?`, "4\ntrapped\n143"),
		{
			name: "exit of a child with 127", programs: []string{"sh"}, args: []string{"-c", "sh -c 'exit 127'; echo $?; definitely-not-a-program 2>/dev/null; echo $?; true"},
			prints: "127\n127",
		},
		{
			name: "deep folders and long paths", programs: []string{"sh", "mkdir"}, args: []string{"-ec", `d=; for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16; do d=$d/nnnnnnnnnnnnnnnnnnnn$i; done; mkdir -p ".$d"; cd ".$d"; echo deep > f; cat f`},
			prints: "deep",
		},
	}
}
