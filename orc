#!/bin/sh
# The command line from a clone: sets itself up on first use, then becomes the program (same process id).
# This runs before every command, so on the usual path it uses shell builtins only.
self=$0
[ ! -L "$self" ] || self=$(readlink -f "$self")
case $self in
  /*) root=${self%/*} ;;
  */*) root=$PWD/${self%/*} ;;
  *) root=$PWD ;;
esac

# The stamp is written last by the set-up; a lockfile that is newer means the packages may have changed.
[ "$root/node_modules/.orchub-setup" -nt "$root/package-lock.json" ] || sh "$root/scripts/setup.sh" || exit

# Compiled code is kept, so that later starts need neither strip types nor compile.
export NODE_COMPILE_CACHE="$root/node_modules/.cache/orchub"
exec "$root/node_modules/node/bin/node" --disable-warning=ExperimentalWarning "$root/src/cli/main.ts" "$@"
