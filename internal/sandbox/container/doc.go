// Package container runs programs in containers of an engine that speaks Docker's API
// over a unix socket: Docker or Podman, on this machine. It is a [level.System] for
// package runner, which bounds, ends and reports a run as it does elsewhere.
//
// The first process of each container is this program, as a helper (package confine): it
// connects to a socket that the server made for this one run, checks that the program
// has the approved bytes, and starts it with the same limits, Landlock rules and filter
// of system calls as a helper outside would. The socket carries the program's standard
// streams in, orders and the report, and is the lifeline: when it closes, the container
// ends. So a run no longer depends on the engine once it has begun.
//
// We specify everything else, and use only the image's files: no network, a read-only
// root, no capabilities, no new privileges, bounds on memory and processes, and the
// folders of the run's Policy at their own paths. The user's folders that the run may
// change are copies, as at other levels without overlays.
//
// An image is named with its digest. Nothing is pulled, and if the engine, the image or
// the runtime is missing, nothing runs instead. Anyone who reaches the engine's socket
// owns the machine, so no run is given a folder that holds it.
package container
