#!/bin/sh
# steps.sh LANE... [then LANE...]...
#
# Makes the targets of each lane one after another, and the lanes side by side; what follows
# "then" begins once everything before it has ended. A lane is one argument: targets
# separated by blanks. A target of several lanes is made by the one that comes to it first.
# If a target fails, the others are still made. A target's output is shown in one piece when
# it ends. At the end, it lists the time of each target, and those that failed.
set -u

make=${MAKE:-make}

# The inner call: one lane, with its results in a folder.
if [ "${1:-}" = lane ]; then
	dir=$2
	shift 2
	child=''
	trap 'kill $child 2>/dev/null; exit 143' TERM
	for target; do
		mkdir "$dir/$target.begun" 2>/dev/null || continue
		from=$(date +%s)
		"$make" --no-print-directory "$target" >"$dir/$target.out" 2>&1 </dev/null &
		child=$!
		if wait "$child"; then
			verdict=ok
		else
			verdict=FAILED
		fi
		line=$(printf '%5ds  %-12s %s' $(($(date +%s) - from)) "$target" "$verdict")
		until mkdir "$dir/printing" 2>/dev/null; do sleep 0.1; done
		printf '== %s\n' "$target"
		cat "$dir/$target.out"
		printf '%s\n' "$line" >>"$dir/summary"
		rmdir "$dir/printing"
	done
	exit 0
fi

dir=$(mktemp -d)
begin=$(date +%s) targets='' lanes=''
trap 'rm -rf "$dir"' EXIT
# Background processes of a shell do not get Ctrl-C.
trap 'kill $lanes 2>/dev/null; wait; exit 130' INT TERM
for lane; do
	if [ "$lane" = "then" ]; then
		wait
		lanes=''
		continue
	fi
	targets="$targets $lane"
	# shellcheck disable=SC2086 # one word for each target
	"$0" lane "$dir" $lane &
	lanes="$lanes $!"
done
wait
echo "== summary"
cat "$dir/summary"
printf '%5ds  in all\n' $(($(date +%s) - begin))
failed=$(sed -n 's/^ *[0-9]*s  \([^ ]*\) *FAILED$/\1/p' "$dir/summary" | tr '\n' ' ')
if [ -n "$failed" ]; then
	echo "failed: $failed" >&2
	exit 1
fi
# A lane that was killed has not reported how its targets ended.
# shellcheck disable=SC2086 # one word for each target
wanted=$(printf '%s\n' $targets | sort -u | wc -l)
if [ "$(wc -l <"$dir/summary")" -ne "$wanted" ]; then
	echo "failed: $wanted targets were to be made, and not all have ended" >&2
	exit 1
fi
