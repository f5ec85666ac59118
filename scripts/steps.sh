#!/bin/sh
# steps.sh TARGET...
#
# Makes each target, whatever became of the others, and ends with how long each
# took and which failed.
set -u

make=${MAKE:-make}
summary='' failed='' begin=$(date +%s)
for target; do
	echo "== $target"
	from=$(date +%s)
	if "$make" --no-print-directory "$target"; then
		verdict=ok
	else
		verdict=FAILED
		failed="$failed $target"
	fi
	summary="$summary$(printf '%5ds  %-12s %s' $(($(date +%s) - from)) "$target" "$verdict")
"
done
printf '== summary\n%s%5ds  in all\n' "$summary" $(($(date +%s) - begin))
if [ -n "$failed" ]; then
	echo "failed:$failed" >&2
	exit 1
fi
