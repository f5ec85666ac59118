package scan

import (
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/packs-mcp/packs-mcp/internal/scan/findings"
)

// commands returns patterns for commands that are run by a script, by a declared tool,
// or by a model that follows a document.
func commands() []pattern {
	const (
		sh = `(/\S*?/)?(ba|z|da|k|fi|c|tc|)sh\b`
		// With an argument, so that a list of words does not match.
		gets    = `(\b(curl|wget|invoke-webrequest|invoke-restmethod|lynx|aria2c|fetch)\b(\.exe)?["']?\s+[^\s|]|\b(iwr|irm)\b\s+["'(]*(https?:|\$|-\w|[\w-]+\.[\w.-]+/))`
		get     = `\b(curl|wget|iwr|irm|invoke-webrequest|invoke-restmethod|lynx|aria2c|fetch)\b`
		end     = `\s*($|[;&|)"'\x60#])`
		private = `(\.ssh/(id_(rsa|dsa|ecdsa|ed25519)|identity|\*)|\.aws/credentials|["'/~]\.netrc\b|\.git-credentials|\.config/gh/hosts\.yml|\.docker/config\.json|\.kube/config\b|\.config/gcloud/(credentials\.db|access_tokens|application_default_credentials|legacy_credentials)|\.azure/(accesstokens|msal_token_cache)|(~|home\}?|homedir\(\))[/"', ]{1,4}\.(npmrc|pypirc)|\.pgpass|\.my\.cnf|\.gnupg/(private|secring)|/etc/g?shadow\b|chrome/[^"' ]*?/(login data|cookies)|\blogin data\b|logins\.json|key4\.db|login\.keychain|wallet\.dat|\.electrum/wallets|\.config/solana/id\.json|exodus\.wallet|\.claude/\.credentials\.json|\.codex/auth\.json|\.gemini/oauth_creds|claude_desktop_config\.json)`
		privies = `.ssh|.aws|.netrc|.git-cred|gh/hosts|.docker|.kube|gcloud|.azure|npmrc|pypirc|.pgpass|.my.cnf|.gnupg|shadow|login data|cookies|logins.json|key4.db|keychain|wallet|solana|.claude|.codex|.gemini|claude_desktop`
		agents  = `(\.claude/(settings(\.local)?\.json|claude\.md|skills/|agents/|commands/|hooks)|\bclaude\.md|\bagents\.md|\bgemini\.md|\.cursorrules|\.cursor/(rules|mcp\.json)|\.mcp\.json|\.codex/(config\.toml|agents\.md)|\.gemini/settings\.json|copilot-instructions\.md|\.vscode/(tasks|settings|mcp)\.json|\.windsurfrules|claude_desktop_config\.json)`
		agentsW = `.claude|claude.md|agents.md|gemini.md|.cursor|.mcp.json|.codex|.gemini|copilot-instr|.vscode|.windsurf|claude_desktop`
		start   = `(~|\$home|\$\{home\}|/home/[\w.-]+|/root|/users/[\w.-]+)/\.(bashrc|zshrc|profile|bash_profile|zprofile|zshenv|bash_login|config/fish/config\.fish)\b`
		root    = `["']?(/|/\*|~|~/|~/\*|\$home|\$home/\*?|\$\{home\}|\$\{home\}/\*?|/(etc|usr|var|home|bin|boot|lib|opt|root|users)/?\*?)["']?`
	)
	return []pattern{
		// Fetched and run.
		run("fetch-pipe", high, medium, `curl|wget|iwr|irm|invoke-webrequest|invoke-restmethod|lynx|aria2c|fetch`,
			gets+`.*?\|\s*[("'{]*\s*(sudo\s+(-\S+\s+)*)?(xargs\s+(-\S+\s+)*)?(env\s+)?(\w+=\S+\s+)*(`+sh+`([^-=.\w/]|$)|(python[0-9.]*|perl|ruby|node|php|deno|bun|pwsh|powershell)(\s+-)?`+end+`|(iex|invoke-expression)\b|source\s+/dev/stdin)`).but(fetched),
		run("fetch-pipe", high, medium, `curl|wget|iwr|irm|downloadstring|invoke-webrequest`,
			`(`+sh+`\s+(-\S+\s+)*<\(|(source|\.)\s+<\(|\beval\s+["']?(\$\(|\x60)|`+sh+`\s+-\w*c\s+["']?(\$\(|\x60)|\b(python[0-9.]*|perl|ruby|node)\s+-[ce]\s+["']?(\$\(|\x60)|\b(iex|invoke-expression)\b\s*(-command\s+)?[("'$&{][^|;]*?)\s*[^|;]*?(curl|wget|iwr|irm|downloadstring|invoke-webrequest)\b.*?`).but(fetched),
		run("fetch-run", high, medium, `curl|wget|iwr|invoke-webrequest`,
			get+`.*?(&&|;|\|\|).*?(\bchmod\s+\S*(\+x|7[0-7][0-7])\s+\S+.*?(&&|;)\s*(sudo\s+)?(\./|/|~/|\$|["'])|\b(ba|z|)sh\s+(\./|/tmp/|~/|\$)?[\w./-]+|(\.|\bsource)\s+(/|~/|\$|\./)|\bstart-process\b)`).but(fetched),
		run("fetch-exec", critical, high, `exec|eval|import|pickle|function|require`,
			`\b(exec|eval)\s*\(\s*(compile\s*\(\s*)?\(?\s*(requests\.get|httpx\.get|[\w.]*urlopen|\(?await\s+\(?\s*(await\s+)?fetch)|\bnew\s+function\s*\(\s*(await|body|data|res)|\bimport\s*\(\s*["'\x60]https?://|\b(pickle|marshal|dill)\.loads?\s*\(\s*(requests|urlopen|urllib|httpx)`),
		run("fetch-address", high, medium, `http`, `\b(https?|ftp)://([\w.-]+@)?(\d{1,3}(\.\d{1,3}){3}|0x[0-9a-f]{8}|\d{8,10})([:/\s"'\x60)]|$)`).but(publicAddress),
		run("drop-host", high, medium, `webhook.site|requestbin|pipedream.net|beeceptor.com|burpcollaborator|oastify|oast.|interact.sh|interactsh|dnslog.cn|ceye.io|transfer.sh|0x0.st|termbin|anonfiles|gofile.io|file.io|catbox.moe|hookbin|postb.in|requestcatcher|iplogger|grabify|.onion|discord|telegram`,
			`\b(webhook\.site|(en\w+\.)?m?\.?pipedream\.net|requestbin\.\w+|\w+\.beeceptor\.com|burpcollaborator\.net|oastify\.com|oast\.(fun|pro|live|site|me|online)|interact\.sh|interactsh\.com|dnslog\.cn|ceye\.io|transfer\.sh|0x0\.st|termbin\.com|anonfiles\.com|gofile\.io|(https?://|@)file\.io|catbox\.moe|hookbin\.com|postb\.in|requestcatcher\.com|iplogger\.\w+|grabify\.link)\b|\b[a-z2-7]{16,56}\.onion\b|discord(app)?\.com/api/webhooks/\d{6,}|api\.telegram\.org/bot\d{6,}`),
		run("drop-host", medium, low, `ngrok|trycloudflare|loca.lt|localhost.run|serveo|bit.ly|tinyurl|is.gd|cutt.ly|rb.gy|pastebin|rentry|paste.ee|hastebin|ix.io|sprunge|telegram`,
			`\b[\w-]+\.(ngrok\.io|ngrok-free\.app|ngrok\.app|trycloudflare\.com|loca\.lt|serveo\.net)\b|\blocalhost\.run\b|https?://(bit\.ly|tinyurl\.com|is\.gd|cutt\.ly|rb\.gy|t\.ly|pastebin\.com/raw|rentry\.co|paste\.ee|hastebin\.com|ix\.io|sprunge\.us)/|api\.telegram\.org/bot`),
		run("locked-download", critical, critical, `.zip|.rar|.7z|.exe|.dmg|.pkg|.msi|.iso|archive`,
			`(https?://|download).*?(\.(zip|rar|7z|exe|dmg|pkg|msi|iso)\b|\barchive\b).*?\b(pass(word|code|phrase)?|pw)\b\s*(is\b|:|=|\x60|"|')`),
		run("locked-download", critical, critical, `extract|unzip|unpack|unrar`,
			`\b(extract|unzip|unpack|unrar)\b.*?\b(with|using)\b.*?\b(pass(word|code)?|pw)\b\s*(is\b|:|=|\x60|"|').*?\b(run|execute|install|open|start|launch)\b`),
		run("locked-download", high, high, `unzip|7z|unrar`, `\bunzip\s+(-\w+\s+)*-p\s*\S+\s+\S+|\b7z\s+[xe]\s.*?-p\S+|\bunrar\s+[xe]\s+(-\S+\s+)*-p\S+`).at(code).but(withPassword),
		run("stealth-run", high, high, `mshta|osascript|rundll32|regsvr32|certutil|bitsadmin|hidden`,
			`\bmshta(\.exe)?\s+["']?(https?:|javascript:|vbscript:)|\bosascript\s.*?(do shell script|display dialog.*?(password|hidden answer))|\bregsvr32.*?/i:https?:|\bcertutil(\.exe)?\s.*?-urlcache|\bbitsadmin(\.exe)?\s.*?/transfer|\brundll32(\.exe)?\s+(javascript|url\.dll|\S*\\temp\\)|\b(powershell|pwsh)(\.exe)?\s.*?-w(indowstyle)?\s+hidden|-windowstyle\s+hidden`),

		// A shell for someone else.
		run("reverse-shell", critical, high, `/dev/tcp|/dev/udp`, `\bsh\s+-i\b.*?/dev/(tcp|udp)/|/dev/(tcp|udp)/\S+\s+0?[<>]&\d|\bexec\s+\d+<>\s*/dev/(tcp|udp)/.*?(\bsh\b|\beval\b|while\s+read)|0<&\d+;\s*exec\s+\d+<>\s*/dev/tcp`),
		run("reverse-shell", critical, high, `nc |nc.|ncat|netcat|mkfifo|sh -i`, `\b(nc|ncat|netcat|nc\.traditional)(\.exe)?\s([^|;]*?\s)?-\w{0,4}[ec]\s*["']?(/\S+/)?(ba|z|)(sh|cmd(\.exe)?|powershell)\b|\bmkfifo\b.*?\|\s*(/\S+/)?\w*sh\b.*?\|\s*\w*(nc|ncat|netcat|openssl|telnet)\b|\|\s*(/bin/)?(ba|)sh\s+-i.*?\|\s*(nc|ncat|openssl|telnet)\b`),
		run("reverse-shell", critical, high, `socat|dup2|pty.spawn|tcpclient|fsockopen|meterpreter|msfvenom|tcpsocket|createconnection|net.connect|socket`,
			`\bsocat\s.*?\bexec:|\bos\.dup2\(\s*(s|so?ck\w*|conn\w*|client\w*)\.fileno\(\)\s*,|\bsocket\b.*?\bpty\.spawn\(|new-object\s+(system\.)?net\.sockets\.tcpclient|\bfsockopen\(.*?\b(exec|proc_open|shell_exec|popen)\(|\bmeterpreter/reverse|\bmsfvenom\s+-p|\btcpsocket\.(new|open)\(.*?\b(exec|popen|spawn)\b|\bnet\.(connect|createconnection)\(.*?\b(stdin|spawn)\b|use\s+socket\s*;.*?open\(\s*stdin`),

		// Decoded and run.
		run("obfuscated-exec", critical, high, `base64|xxd|openssl|uudecode|base32`,
			`\b(base(64|32)\s+(-\S+\s+)*(-d|-di|--decode)\b|xxd\s+-r\b|openssl\s+(enc|base64|aes\S*)\s.*?-d\b|uudecode\b).*?\|\s*(sudo\s+)?(`+sh+`|(python[0-9.]*|perl|ruby|node|php)`+end+`|gunzip.*?\|\s*`+sh+`)|(\beval\s+["']?(\$\(|\x60)|`+sh+`\s+(-\w*c\s+["']?(\$\(|\x60)|<<<\s*["']?(\$\(|\x60)|<\()|\bsource\s+<\().*?(base(64|32)\s+(-\S+\s+)*(-d|-di|--decode)\b|xxd\s+-r\b|openssl\s+(enc|base64)\s.*?-d\b)`),
		run("obfuscated-exec", critical, high, `rev|tr |printf|echo -e`, `(\brev\b|\btr\s+\S+\s+\S+|\bprintf\s+["']?(\\x[0-9a-f]{2}|\\[0-7]{3}){4}\S*|echo\s+-e\s+["']?(\\x[0-9a-f]{2}){4}\S*)["']?\s*\|\s*(sudo\s+)?`+sh+`(\s|$|["'])`),
		run("obfuscated-exec", critical, high, `b64decode|b32decode|a85decode|decompress|marshal|fromhex|unhexlify|codecs|__import__|rot13`,
			`\b(exec|eval)\s*\(.*?(b64decode|b32decode|a85decode|b85decode|zlib\.decompress|lzma\.decompress|marshal\.loads|bytes\.fromhex|unhexlify|codecs\.decode|decompress\()|\b(exec|eval)\s*\(\s*__import__|__import__\(\s*['"](base64|zlib|marshal|codecs|builtins)['"]\s*\)\s*\.\s*\w+\(|\b(os\.system|subprocess\.\w+|popen)\s*\(.*?(b64decode|fromhex|unhexlify|rot13)`),
		run("obfuscated-exec", high, medium, `__builtins__|builtins`, `\bgetattr\(\s*(__builtins__|builtins)\s*,\s*["']|__builtins__\s*\[|\["__builtins__"\]`),
		run("obfuscated-exec", critical, high, `atob|fromcharcode|unescape|buffer.from|function(p,a,c`,
			`\b(eval|function|settimeout|setinterval|execsync|exec)\s*\(\s*[^;{}]*?(\batob\s*\(|string\.fromcharcode\s*\(|\bunescape\s*\(|buffer\.from\s*\(.*?['"](base64|hex)['"])|\beval\(function\(p,a,c,k,e,`),
		run("obfuscated-exec", critical, high, `powershell|pwsh|frombase64string`,
			`\b(powershell|pwsh)(\.exe)?["']?,?\s.*?-e(c|nc|ncodedcommand)?["']?,?\s+["']?[a-z0-9+/=]{20}|frombase64string.*?(\biex\b|invoke-expression|\[(system\.)?reflection\.assembly\]|\.invoke\()|(\biex\b|invoke-expression|reflection\.assembly\]::load).*?frombase64string`),
		run("obfuscated-exec", critical, high, `base64_decode|gzinflate|str_rot13|decode_base64|decode64|gzuncompress`, `\b(eval|assert)\s*\(?\s*(@?\s*(base64_decode|gzinflate|str_rot13|gzuncompress)\s*\(|decode_base64|base64\.(strict_)?decode64)`),
		run("dynamic-exec", medium, none, `exec|eval|os.system|shell=true|shell = true|new function|vm.run`,
			`(^|[^\w.])(exec|eval)\s*\(\s*[a-z_][\w.]*\s*[,)+]|\bos\.(system|popen)\s*\(\s*(f["']|[a-z_]\w*\s*[)+])|\bos\.(system|popen)\s*\(\s*["'][^"']*["']\s*(%|\+|\.format)|\bshell\s*=\s*true\b|\bnew\s+function\s*\(\s*[a-z_]|\bvm\.runin\w*context\(|^eval\s+["']?\$`).at(code),

		// Keys and passwords.
		run(ruleCredentialRead, high, none, privies, private).at(code).but(uses),
		run(ruleCredentialRead, high, medium, privies,
			`\b(cat|less|head|tail|base64|xxd|strings|read|open|grab|collect|dump|exfiltrate|upload|print|view|show|tar|zip|scp)\b[^.!?;|]*?`+private).at(prose, comment, meta, quoted).but(uses),
		run(ruleCredentialRead, high, medium, `find-generic|find-internet|dump-keychain|cmdkey|ntds.dit|lsass|/environ|169.254.169.254|metadata.google`,
			`\bsecurity\s+(find-(generic|internet)-password|dump-keychain)|\bcmdkey\s+/list|\bntds\.dit\b|\blsass(\.exe|\.dmp)|/proc/(self|\d+|\*|\$\w+)/environ|\b169\.254\.169\.254/|metadata\.google\.internal/computemetadata`).but(harmlessMetadata),
		run(ruleCredentialSend, critical, high, `curl|wget|nc |ncat|netcat|telnet|openssl`,
			`\b(env|printenv|export\s+-p|set)\b\s*\|[^;]*?\b(curl|wget|nc|ncat|netcat|telnet|openssl\s+s_client)\b|\b(cat|tar|base64|gzip|zip)\b[^;|]*?(`+private+`|\.env\b|/etc/passwd|\.ssh\b|\.aws\b)[^;]*?\|[^;]*?\b(curl|wget|nc|ncat|netcat|telnet|openssl\s+s_client)\b|\b(curl|wget|nc|ncat)\b.*?(\$\(|\x60)\s*(env|printenv|cat\s+\S*(\.ssh|\.aws|\.env\b|passwd|shadow|credentials|\.netrc|id_rsa))`),
		run(ruleCredentialSend, critical, high, `curl|wget`,
			`\bcurl\b.*?(\s-d|--data\S*|\s-f|--form\S*|\s-t|--upload-file)\s*=?\s*["']?[\w=]*@?\S*(`+private+`|\.env\b|/etc/passwd|id_rsa)|\bwget\b.*?--(post|body)-file[= ]\S*(`+private+`|\.env\b|/etc/passwd|id_rsa)`),
		run(ruleCredentialSend, critical, high, `os.environ|process.env|open(|readfile`,
			`\b(requests|httpx|session|client|aiohttp)\.(post|put|get|request)\(.*?(os\.environ\s*[,)}]|dict\(os\.environ|open\([^)]*?(\.ssh|\.aws|\.env\b|credentials|id_rsa|\.netrc))|\b(fetch|axios(\.post)?|got(\.post)?)\(.*?(process\.env\s*[,)}]|json\.stringify\(\s*process\.env\s*\)|readfile(sync)?\([^)]*?(\.ssh|\.aws|\.env\b|id_rsa))`),
		run("dns-send", high, medium, `nslookup|dig |host |ping |gethostbyname|getaddrinfo|resolve`,
			`\b(nslookup|dig|host|ping)\s.*?(\$\(|\x60).*?(base64|base32|xxd|\bod\s|whoami|\bcat\s|\benv\b|hostname|\bid\b).*?(\)|\x60)["']?\.[a-z0-9-]+\.[a-z]{2}|\b(gethostbyname|getaddrinfo|resolve4?|lookup)\(\s*(f["'][^"']*?\{[^}]*?\}[^"']*?\.[a-z]|\x60[^\x60]*?\$\{[^}]*?\}\.[a-z]|\w+?\s*\+\s*["']\.)`),

		// Damage to the machine.
		run("destructive", high, medium, `rm `, `\brm\s+(-\S+\s+)*-[a-z]*(r|f)[a-z]*\s+(-\S+\s+)*`+root+end),
		run("destructive", high, medium, `--no-preserve-root|mkfs|of=/dev/|/dev/sd|/dev/nvme|/dev/disk|wipefs|-delete|-exec rm|:(|: (`,
			`--no-preserve-root\b|\bmkfs(\.\w+)?\s+(-\S+\s+)*/dev/\w|\bdd\s.*?\bof=/dev/(sd|nvme|hd|disk|mmcblk|xvd|vd)|>\s*/dev/(sd[a-z]|nvme\d|disk\d)|\bwipefs\s+(-\S+\s+)*/dev|\bfind\s+["']?(/|~/?|\$home/?)["']?\s.*?(-delete|-exec\s+(rm|shred))\b|:\s*\(\s*\)\s*\{\s*:\s*\|\s*:\s*&\s*\}\s*;?\s*:`),
		run("destructive", high, medium, `chmod|chown`, `\b(chmod|chown)\s+(-\S+\s+)*\S+\s+/\s*($|[;&|)"'\x60#])`),
		run("destructive", high, medium, `del /|erase /|rd /s|rmdir /s|format |vssadmin|remove-item`,
			`\b(del|erase)\s+(/[sqf]\s+)+["']?[a-z]:\\(\s|\*|["']|$)|\b(rd|rmdir)\s+(/[sq]\s+)+["']?[a-z]:\\?(\s|["']|$)|\bvssadmin(\.exe)?\s+delete\s+shadows|\bformat\s+[a-z]:\s*(/|$)|\bremove-item\s.*?-recurse.*?\s["']?([a-z]:\\(\s|["'*]|$)|\$home|\$env:userprofile)|\bremove-item\s+(-path\s+)?["']?([a-z]:\\["'*]?\s|\$home\s|\$env:userprofile\s).*?-recurse`),
		run("destructive", high, medium, `rmtree|rmsync|rimraf|fs.rm`, `\brmtree\(\s*(["']/["']|["']/(etc|usr|home|var)/?["']|os\.path\.expanduser\(\s*["']~/?["']\s*\)|(pathlib\.)?path\.home\(\)\s*[,)])|\b(rmsync|rmdirsync|rimraf|rm)\(\s*(["']/["']|os\.homedir\(\)\s*[,)]|process\.env\.home\s*[,)])`),
		run("persistence", high, medium, `crontab|/etc/cron|spool/cron`, `\|\s*crontab\b|\bcrontab\s+(-\s|-$|["']?[\w/$~][\w./$~-]*["']?\s*$)|(>>?|\btee\b(\s+-a)?|\bcp\s+\S+|\bmv\s+\S+)\s*["']?(/etc/cron|/var/spool/cron)`),
		run("persistence", high, low, `systemctl|systemd|launchctl|launchagents|launchdaemons`,
			`\bsystemctl\s+(--\S+\s+)*enable\b|(>>?|\btee\b(\s+-a)?|\bcp\s+\S+)\s*["']?\S*(/etc/systemd/system|\.config/systemd/user)/|\blaunchctl\s+(load|bootstrap|submit|enable)\b|(>>?|\btee\b|\bcp\s+\S+|\bopen\(|writefile\w*\().*?library/launch(agents|daemons)/`),
		run("persistence", high, medium, `.bashrc|.zshrc|.profile|.bash_profile|.zprofile|.zshenv|.bash_login|config.fish`,
			`(>>?|\btee\b(\s+-a)?)\s*["']?`+start+`|\bopen\([^)]*?\.(bashrc|zshrc|profile|bash_profile|zprofile|zshenv)["')].{0,12},\s*["'](a|w)|\b(append|write)file(sync)?\([^)]*?\.(bashrc|zshrc|profile|bash_profile|zprofile)`).but(onlyPath),
		run("persistence", high, high, `authorized_keys`, `(>>?|\btee\b(\s+-a)?|\bopen\(|(append|write)file\w*\(|\bcp\s+\S+).*?authorized_keys`),
		run("persistence", high, medium, `currentversion|schtasks|register-scheduledtask|start menu|autostart|hookspath|templatedir|sshcommand|fsmonitor|rc.local|profile.d|ld.so.preload|sc.exe|sc create`,
			`currentversion\\{1,2}run\b|\bschtasks(\.exe)?\s+/create|\bregister-scheduledtask\b|start menu\\{1,2}programs\\{1,2}startup|(>>?|\btee\b|\bcp\s+\S+|\bopen\().*?(\.config/autostart/|/etc/rc\.local|/etc/profile\.d/|/etc/ld\.so\.preload)|\bgit\s+config\s+(--global|--system)\s+(core\.(hookspath|sshcommand|fsmonitor)|init\.templatedir)|\bsc(\.exe)?\s+create\s+\w+\s+binpath`),
		run("agent-config", high, medium, agentsW,
			`(>>?|\btee\b(\s+-a)?|\b(cp|mv|install|ln|rsync)\s+(-\S+\s+)*\S+|\bsed\s+-i\S*\s.*?)\s*["']?[^\s"']*?`+agents+`|\bopen\([^)]*?`+agents+`["')].{0,12},\s*["'](a|w)|\b(append|write)file(sync)?\([^;]*?`+agents+`|`+agents+`["']?\)?\.write_text\(`),
		run("self-copy", high, medium, `$0|bash_source|__file__|__dirname|import.meta|skill.md`,
			`\b(cp|rsync|install|ln)\b.*?(\$0|bash_source|\$\(dirname).*?(\.claude/|\.codex/|\.agents/|\.cursor/|/)?(skills|packs|plugins)\b|\b(copytree|copy2?|copyfile|cpsync|copyfilesync)\(.*?(__file__|__dirname|import\.meta).*?(skills|packs|plugins|site-packages)|\bfor\s+\w+\s+in\s+.*?(skill\.md|skills?/\*).*?(>>|tee\s+-a|\bcp\s)`),
		run("security-off", high, medium, `setenforce|ufw|csrutil|spctl|quarantine|mppreference|iptables|netsh|apparmor|histfile|history -c|auditctl|defender|gatekeeper|wevtutil|selinux`,
			`\bsetenforce\s+0|\bufw\s+disable|\bcsrutil\s+disable|\bspctl\s+--(master|global)-disable|\bxattr\s.*?com\.apple\.quarantine|\b(set|add)-mppreference\s.*?(disable|exclusion)|\biptables\s+(-f|--flush)\b|\bnetsh\s+advfirewall\s+set\s+\w+\s+state\s+off|\bunset\s+histfile|\bhistfile=/dev/null|\bhistory\s+-c\b|\bauditctl\s+-e\s*0|\bwevtutil(\.exe)?\s+cl\b|\bselinux=disabled|\bsystemctl\s+(stop|disable)\s+\S*(firewalld|apparmor|auditd|falcon|clamav)`),
		run("tls-off", medium, low, `curl|verify|tls_reject|sslverify|stricthostkey|no-check-cert|insecure|_create_unverified|executionpolicy|rejectunauthorized`,
			`\bcurl\s([^|;]*?\s)?(-\w*k\w*|--insecure)(\s|$)|\bverify\s*=\s*false\b|node_tls_reject_unauthorized["']?\]?\s*[=:]\s*["']?0|rejectunauthorized\s*:\s*false|\bsslverify\s+false|git_ssl_no_verify=(1|true)|stricthostkeychecking[= ]no\b|--no-check-certificate|insecureskipverify\s*:\s*true|_create_unverified_context|-executionpolicy\s+(bypass|unrestricted)`),
		run("as-root", medium, none, `sudo|doas|pkexec|runas`, `(^|[;&|(]\s*|\b(then|do|exec|&&)\s+|["'\x60])(sudo|doas|pkexec)\s+(-\S+\s+)*[\w./$]|start-process\s.*?-verb\s+runas`).at(code),
		run("root-forever", critical, high, `nopasswd|sudoers|usermod|gpasswd|chmod|useradd|localgroup`,
			`\bnopasswd\s*:|(>>?|\btee\b(\s+-a)?)\s*["']?/etc/sudoers|\busermod\s+(-\S+\s+)*-?\w*g\w*\s+(sudo|wheel|root|admin)\b|\bgpasswd\s+-a\s+\S+\s+(sudo|wheel|root)\b|\bchmod\s+(u\+s|\+s|a\+s|[46][0-7]{3})\s+\S|\bnet\s+localgroup\s+administrators\s.*?/add`),
		run("container-escape", high, medium, `docker|podman|nsenter|chroot`,
			`\b(docker|podman)\s+(container\s+)?(run|create)\s.*?(--privileged\b|(-v|--volume)[= ]["']?/:|--pid[= ]host|--cap-add[= ](all|sys_admin)|docker\.sock|--mount[= ]\S*src=/,)|\bnsenter\s.*?(-t|--target)[= ]?1\b|\bchroot\s+/(host|mnt/host)`),
		run("miner", critical, high, `xmrig|stratum|minerd|cpuminer|nicehash`, `\b(xmrig|minerd|cpuminer|nicehash\S*)(\.exe)?\s+(-\S+\s+\S*\s*)*-(o|-url|-algo|-donate)|(-o|--url|pool\S*)["']?[\s:=]+["']?stratum\+(tcp|ssl|tls)://\w`),
		run("miner", critical, low, `xmrig|stratum|minerd|cpuminer|coinhive|cryptonight`, `\bxmrig\b|stratum\+(tcp|ssl|tls)://|\bminerd\b|\bcpuminer\b|\bcoinhive\b|\bcryptonight\b`),
		run("spying", high, medium, `pynput|pyxhook|keyboard|getasynckeystate|setwindowshookex|xinput|screencapture|iohid`,
			`\b(from|import)\s+pynput\b|\bpynput\.keyboard|\bimport\s+pyxhook|\bkeyboard\.(on_press|on_release|hook|record)\(|\bgetasynckeystate\b|\bsetwindowshookex\w?\b|\bxinput\s+test|\bscreencapture\s+(-\w+\s+)*-\w*x|\biohidmanager`).at(code),
		run("spying", medium, none, `imagegrab|videocapture|pyautogui|sounddevice|pyaudio|arecord|pbpaste|xclip|pyperclip`,
			`\bimagegrab\.grab\(|\bcv2\.videocapture\(\s*0|\bpyautogui\.screenshot\(|\bsounddevice\.rec\(|\bpyaudio\.pyaudio\(|\barecord\s|\bpyperclip\.paste\(|\bxclip\s.*?-o\b|(^|[|;&(]\s*)pbpaste\b`).at(code),
		run("untrusted-install", medium, low, `install|gosumdb|nodigest|nogpgcheck|allow-unauth`,
			`\bpip[0-9.]*\s+install\s.*?((--index-url|-i)[= ]["']?http:|--extra-index-url|--trusted-host|git\+http:|["']?https?://\S+\.(whl|tar\.gz|zip))|\bnpm\s+(i|install|add)\s.*?(\shttps?://|--registry[= ]["']?http:)|\bgem\s+install.*?--source[= ]http:|--allow-unauthenticated|\brpm\s.*?--(nodigest|nosignature)|--nogpgcheck|\bgosumdb=off`),
		run("plain-http", low, none, `http://`, `\b(curl|wget|requests\.get|urlopen|fetch|iwr|invoke-webrequest)\b.*?http://[\w.-]+`).at(code).but(notLocal),
	}
}

// run returns a pattern for a command. words are separated by bars.
func run(rule string, inCode, inDoc findings.Severity, words, expr string) pattern {
	return pattern{rule: rule, code: inCode, doc: inDoc, words: strings.Split(words, "|"), expr: lazily(expr)}
}

func allPatterns() []pattern { return slices.Concat(prompts(), commands(), halves()) }

// halves returns patterns that are an attack only together.
func halves() []pattern {
	half := func(is sign, words, expr string) pattern {
		return pattern{sign: is, words: strings.Split(words, "|"), expr: lazily(expr), only: []zone{code}}
	}
	return []pattern{
		half(sendsData, `requests|httpx|session|urlopen|urllib|http.client|fetch(|axios|curl|nc |.connect(|create_connection|smtplib|invoke-|wget|.request(`,
			`\b(requests|httpx|session)\.(post|put)\(|\burlopen\(.*data|\burllib\.request\.request\(|\bhttp\.client\.|\bfetch\(|\baxios\b|\bcurl\s.*(\s-d|--data|\s-f\s|--form|\s-t\s|--upload-file|-x post)|\b(nc|ncat)\s+\S+\s+\d|\.connect\(\s*\(|create_connection\(|\bsmtplib\b|invoke-(webrequest|restmethod)\b.*-method\s+post|\bwget\b.*--post|https?\.request\(`),
		half(readsSecrets, `environ|process.env|printenv|$(env|env:`,
			`\bjson\.(dumps|stringify)\(\s*(dict\(\s*)?(os\.environ|process\.env)\s*[,)]|\bdict\(\s*os\.environ\s*\)|object\.(entries|assign)\(\s*(\{\}\s*,\s*)?process\.env\s*\)|\bstr\(\s*os\.environ\s*\)|=\s*["']?\$\((env|printenv)\b|get-childitem\s+env:`),
		half(readsSecrets, `.ssh|id_rsa|id_ed25519|id_ecdsa|.aws|.netrc|.git-cred|gh/hosts|.gnupg|shadow|login data|logins.json|key4.db|keychain|find-generic|wallet.dat|solana|.claude|.codex|gcloud`,
			`\.ssh["'/, )]+(id_(rsa|dsa|ecdsa|ed25519)\b|\*)|["'/]id_(rsa|ed25519|ecdsa)["']|\.aws["'/, )]+credentials|["'/~]\.netrc\b|\.git-credentials|gh/hosts\.yml|\.gnupg/|/etc/shadow|login data|logins\.json|key4\.db|login\.keychain|find-generic-password|wallet\.dat|solana/id\.json|\.claude/\.credentials|\.codex/auth\.json|gcloud/(application_default_credentials|credentials\.db)`).but(uses),
		half(savesDownload, `curl|wget|iwr|invoke-webrequest`, `\bcurl\s.*(\s-\w*o\b|--output|--remote-name)|\bwget\s|\b(iwr|invoke-webrequest)\s.*-outfile`),
		half(makesProgram, `chmod`, `\bchmod\s+(-\S+\s+)*(\S*\+\w*x|0?7[0-7][0-7])\s`),
		half(connects, `.connect(|create_connection|net.connect|net.createconnection|net.socket|tcpsocket|net.dial`,
			`\.connect\(\s*\(|create_connection\(|\bnet\.(connect|createconnection)\(|\bnew net\.socket\(|\btcpsocket\.(new|open)\b|\bnet\.dial\(`),
		half(givesShell, `pty.spawn|os.dup2|call(|run(|popen(|check_output(|spawn(|command(|.stdout.pipe`,
			`\bpty\.spawn\(|\bos\.dup2\(\s*\w+\.fileno\(\)\s*,\s*[012]\b|\b(call|run|popen|check_output|spawn|command)\(\s*\[?\s*["'](/bin/)?(ba|z|)sh["']\s*,\s*\[?\s*["']-i["']|\bspawn\(\s*["'](/bin/)?(ba|z|)sh["']\s*(,\s*\[\s*\]\s*)?\)|\.stdout\.pipe\(\s*(client|socket|sock|conn)`),
	}
}

// fetched makes a download in a document count as much as in a script if its source is
// anonymous.
func fetched(u *unit, from, to int, s findings.Severity) (findings.Severity, bool) {
	if u.zone == code || u.zone == comment {
		return s, true
	}
	lower := u.lower[from:to]
	if slices.ContainsFunc(addresses().FindAllString(lower, 4), isPublic) {
		return high, true
	}
	if oddHosts().MatchString(lower) || strings.Contains(lower, "http://") && !localHTTP().MatchString(lower) {
		return high, true
	}
	return s, true
}

var (
	addresses = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`https?://\d[\d.]*`) })
	oddHosts  = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(pastebin\.com|rentry\.co|paste\.ee|hastebin\.com|transfer\.sh|0x0\.st|bit\.ly|tinyurl\.com|is\.gd|ngrok|trycloudflare|gist\.githubusercontent\.com|glot\.io|discordapp|\.onion|webhook\.site|\.(tk|ml|ga|cf|gq|xyz|top|zip)/|\s(-k|--insecure)\s|--no-check-certificate)`)
	})
	localHTTP = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`http://(localhost|127\.|\[::1\]|0\.0\.0\.0|192\.168\.|10\.|172\.(1[6-9]|2\d|3[01])\.|[\w.-]*example\.(com|org|net)|[\w-]+(:\d+)?(/|\s|$|["'])|[\w.-]+\.(local|internal|test|svc|localhost)\b|\$|\{|<)`)
	})
)

// notLocal leaves out addresses on this machine, in private networks, and of examples.
func notLocal(u *unit, from, to int, s findings.Severity) (findings.Severity, bool) {
	return s, !localHTTP().MatchString(u.lower[from:to])
}

// publicAddress leaves out addresses that are not on the internet.
func publicAddress(u *unit, from, to int, s findings.Severity) (findings.Severity, bool) {
	return s, isPublic(u.lower[from:to])
}

// isPublic reports whether the host of a URL is an address on the internet. A host
// written as a single number hides its address.
func isPublic(address string) bool {
	_, rest, _ := strings.Cut(address, "://")
	if i := strings.IndexByte(rest, '@'); i >= 0 {
		rest = rest[i+1:]
	}
	rest = strings.TrimRight(rest, ":/ \"'`)")
	if !strings.Contains(rest, ".") {
		return true
	}
	addr, err := netip.ParseAddr(rest)
	if err != nil || addr.IsPrivate() || addr.IsLoopback() || addr.IsUnspecified() || addr.IsLinkLocalUnicast() || addr.IsMulticast() {
		return false
	}
	for _, reserved := range []string{"192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24", "100.64.0.0/10", "198.18.0.0/15", "240.0.0.0/4", "1.2.3.4/32", "1.1.1.1/32", "8.8.8.8/32", "0.0.0.0/8"} {
		if netip.MustParsePrefix(reserved).Contains(addr) {
			return false
		}
	}
	return true
}

// harmlessMetadata leaves out a cloud machine's metadata that is not a key.
func harmlessMetadata(u *unit, from, to int, s findings.Severity) (findings.Severity, bool) {
	return s, !machineFacts().MatchString(u.behind(to))
}

var machineFacts = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^/?(v1/(project/(numeric-)?project-id|instance/(zone|id|name|hostname|machine-type|region))|latest/meta-data/(instance-id|instance-type|ami-id|hostname|local-ipv4|public-ipv4|placement/[\w-]+))(["'\s)]|$)`)
})

// uses leaves out public keys, programs that log in with a key, and checks that a
// file exists. A path that is assigned to a variable counts less.
func uses(u *unit, from, to int, s findings.Severity) (findings.Severity, bool) {
	before := u.before(from)
	if strings.HasPrefix(u.behind(to), ".pub") || logsIn().MatchString(u.around(from, to)) || looksOnly().MatchString(before) {
		return s, false
	}
	if variable().MatchString(before) {
		s = max(s, medium)
	}
	match := u.lower[from:to]
	for _, weak := range []string{".kube/config", ".docker/config", "npmrc", "pypirc", "claude_desktop_config"} {
		if strings.Contains(match, weak) {
			return max(s, medium), true
		}
	}
	return s, true
}

// logsIn matches a line that starts a program which uses a key to log in and does not
// send it.
var logsIn = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(\$ )?(sudo )?(ssh|scp|sftp|ssh-add|ssh-keygen|ssh-copy-id|chmod|kubectl|helm|ansible\S*|autossh)\s[^|;&]*$|^(export\s+)?(kubeconfig|git_ssh_command)=`)
})

// looksOnly matches the text before the path of a file that is tested for, created or
// has its mode changed, but is not read.
var looksOnly = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`((^|\s)test|\[)\s+(!\s+)?-[defrswx]\s+["']?[^\s"';|&]*$|\bssh-keygen\s[^|;&]*-f\s+["']?[^\s"';|&]*$|(^|[;&|]\s*)(sudo\s+)?(chmod|chown|touch)\s[^|;&<>]*$`)
})

// variable matches the text before a path that is assigned to a shell variable.
var variable = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(^|[;&|]\s*)(export\s+|readonly\s+|local\s+(-\w+\s+)*)?\w+=["']?(\$\{\w+:[-=])?(~|\$home|\$\{home\}|/home/[\w.-]+|/root)?/?$`)
})

// withPassword leaves out unzip -p, which writes to a pipe: -P is for a password.
func withPassword(u *unit, from, to int, s findings.Severity) (findings.Severity, bool) {
	match := u.text[from:to]
	return s, !strings.HasPrefix(match, "unzip") || strings.Contains(match, "-P")
}

// onlyPath lowers the severity of a line in a document that adds a folder to PATH or
// sets up completion, as installation instructions do.
func onlyPath(u *unit, from, to int, s findings.Severity) (findings.Severity, bool) {
	if u.zone != code && harmlessRC().MatchString(u.around(from, to)) {
		return low, true
	}
	return s, true
}

var harmlessRC = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`echo\s+["']?(export\s+\w+=|alias\s|eval\s+["']?\\?\$\(\w+ (init|completion|hook|env|shellenv|activate)|source\s+<\(\w+ completion|fpath=|\. "\$)`)
})
