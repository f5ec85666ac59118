package seatbelt

// base begins every profile: what a program needs to run at all.
//
// "deny default" is not enough: version 1 of the language allows some operations
// unless they are named. Among them are hard links and clones, which could give a
// protected file a second name where it can be read or changed.
//
// The dynamic loader reads the folder "/", which reveals only the names in it. Other
// processes are invisible: without kern.proc, the environments of the server and the
// client, which hold keys, cannot be read. The mach services are those for looking up
// users, logging and preferences; without the operation user-preference-read, no
// application's settings are served. There is no /dev/tty, and no pseudo-terminal.
const base = `(version 1)
(deny default)
(deny process-info*)
(deny nvram*)
(deny iokit-get-properties)
(deny file-map-executable)
(deny file-link)
(deny file-clone)
(deny network*)
(deny mach-lookup)

(allow process-fork)
(allow signal (target same-sandbox))
(allow process-info* (target same-sandbox))
(allow ipc-posix-sem)
(allow sysctl-read
  (sysctl-name-prefix "hw.")
  (sysctl-name-prefix "machdep.cpu.")
  (sysctl-name "kern.argmax")
  (sysctl-name "kern.bootargs")
  (sysctl-name "kern.clockrate")
  (sysctl-name "kern.hostname")
  (sysctl-name "kern.iossupportversion")
  (sysctl-name "kern.maxfiles")
  (sysctl-name "kern.maxfilesperproc")
  (sysctl-name "kern.maxproc")
  (sysctl-name "kern.maxprocperuid")
  (sysctl-name "kern.ngroups")
  (sysctl-name "kern.osproductversion")
  (sysctl-name "kern.osproductversioncompat")
  (sysctl-name "kern.osrelease")
  (sysctl-name "kern.osrevision")
  (sysctl-name "kern.ostype")
  (sysctl-name "kern.osvariant_status")
  (sysctl-name "kern.osversion")
  (sysctl-name "kern.secure_kernel")
  (sysctl-name "kern.tcsm_available")
  (sysctl-name "kern.tcsm_enable")
  (sysctl-name "kern.usrstack64")
  (sysctl-name "kern.version")
  (sysctl-name "security.mac.lockdown_mode_state")
  (sysctl-name "sysctl.proc_cputype")
  (sysctl-name "sysctl.proc_native")
  (sysctl-name "sysctl.proc_translated")
  (sysctl-name "vm.loadavg"))
(allow mach-lookup
  (global-name "com.apple.system.opendirectoryd.libinfo")
  (global-name "com.apple.system.logger")
  (global-name "com.apple.logd")
  (global-name "com.apple.cfprefsd.agent")
  (global-name "com.apple.cfprefsd.daemon"))

(allow file-read* file-test-existence
  (literal "/")
  (literal "/etc")
  (literal "/tmp")
  (literal "/var")
  (literal "/dev/null")
  (literal "/dev/zero")
  (literal "/dev/random")
  (literal "/dev/urandom")
  (literal "/dev/dtracehelper")
  (literal "/private/var/db/xcode_select_link")
  (literal "/private/var/db/DarwinDirectory/local/recordStore.data")
  (subpath "/private/var/db/dyld")
  (subpath "/private/var/db/timezone"))
(allow file-read-metadata file-test-existence
  (literal "/dev")
  (literal "/dev/stdin")
  (literal "/dev/stdout")
  (literal "/dev/stderr")
  (literal "/private")
  (literal "/private/tmp")
  (literal "/private/var")
  (literal "/private/var/db")
  (literal "/private/var/tmp"))
(allow file-read-data file-test-existence file-write-data
  (subpath "/dev/fd"))
(allow file-write-data
  (literal "/dev/null")
  (literal "/dev/zero")
  (literal "/dev/dtracehelper"))
(allow file-ioctl
  (literal "/dev/dtracehelper"))
`

// afterSystem denies what the rules for the system's folders allow by mistake: the
// volume with the home folders is also mounted in /System.
const afterSystem = `(deny file-read* file-map-executable process-exec*
  (subpath "/System/Volumes"))
(allow file-read* file-test-existence file-map-executable process-exec*
  (subpath "/System/Volumes/Preboot/Cryptexes"))
(allow file-read-metadata file-test-existence
  (literal "/System/Volumes")
  (literal "/System/Volumes/Data")
  (literal "/System/Volumes/Preboot"))
`

// network is added for a run with the network "full". It allows no local sockets, which
// are files, except that of the name service, and no other family of sockets.
const network = `(allow network-outbound (remote ip "*:*"))
(allow network-inbound (local ip "*:*"))
(allow network-bind (local ip "*:*"))
(allow network-outbound (literal "/private/var/run/mDNSResponder"))
(allow sysctl-read (sysctl-name-prefix "net.routetable."))
(allow mach-lookup
  (global-name "com.apple.SystemConfiguration.DNSConfiguration")
  (global-name "com.apple.SystemConfiguration.configd")
  (global-name "com.apple.dnssd.service")
  (global-name "com.apple.mDNSResponder")
  (global-name "com.apple.trustd")
  (global-name "com.apple.trustd.agent"))
`

// programs ends every profile: it denies system programs that ask services to act for
// them. The services are denied as well. Both rules are there because one alone was
// seen to fail.
const programs = `(deny process-exec*
  (literal "/bin/launchctl")
  (literal "/usr/bin/at")
  (literal "/usr/bin/automator")
  (literal "/usr/bin/batch")
  (literal "/usr/bin/crontab")
  (literal "/usr/bin/open")
  (literal "/usr/bin/osascript")
  (literal "/usr/bin/security"))
`
