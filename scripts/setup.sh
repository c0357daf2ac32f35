#!/bin/sh
# Makes a clone ready to run: its npm packages (Node 24 is one of them) and the OS programs it uses.
# Needs only sh and whatever node and npm the machine has; does nothing when all is up to date.
# Everything it says goes to stderr: stdout belongs to the program that starts next.
set -eu
case $0 in */*) cd "${0%/*}/.." ;; *) cd .. ;; esac

stamp=node_modules/.orchub-setup # a copy of the lockfile that was installed; npm ci removes it
runtime=node_modules/node/bin/node
lock=.cache/setup.lock # a symlink that names the process holding it
log=.cache/setup.log

say() { printf 'orchub: %s\n' "$*" >&2; }

fail() {
  [ ! -f "$log" ] || cat "$log" >&2
  for line; do say "$line"; done
  exit 1
}

up_to_date() { [ -x "$runtime" ] && cmp -s package-lock.json "$stamp"; }

# Only one process may break the lock of a given dead one, and only while the lock still names it.
break_stale_lock() {
  mkdir "$lock.$1" 2>/dev/null || return 0
  [ "$(readlink "$lock")" != "$1" ] || rm -f "$lock"
  rmdir "$lock.$1"
}

take_lock() {
  [ -w .cache ] || fail "cannot write to $PWD/.cache"
  waited=0
  until ln -s "$$" "$lock" 2>/dev/null; do
    holder=$(readlink "$lock") || holder=
    if [ -n "$holder" ] && ! kill -0 "$holder" 2>/dev/null; then
      break_stale_lock "$holder"
    elif [ "$waited" -eq 0 ]; then
      say "another set-up is running (process $holder), waiting for it"
    fi
    waited=$((waited + 1))
    [ "$waited" -lt 600 ] || fail "waited too long; if no set-up is running: rm -r $lock*"
    sleep 1
  done
  trap 'rm -f "$lock"' EXIT
  trap 'exit 130' INT
  trap 'exit 143' TERM
}

install_packages() {
  command -v npm >/dev/null || fail 'npm is missing: install Node.js (any version from 20 on), then try again'
  say 'installing npm packages, once; this takes about half a minute …'
  # --include=dev because NODE_ENV=production would leave out Node 24 itself.
  npm ci --include=dev --no-audit --no-fund --loglevel=error >"$log" 2>&1 ||
    fail 'npm ci failed, see above. Is the npm registry reachable? Try again, or run: npm ci'
  [ -x "$runtime" ] ||
    fail "npm ci left out $runtime. Does your npm configuration set ignore-scripts?" \
      'Then allow them for this once: npm_config_ignore_scripts=false sh scripts/setup.sh'
  cp package-lock.json "$stamp.new"
  mv "$stamp.new" "$stamp" # atomic: ./orc looks only at its date
}

install_programs() {
  if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
    say "please install$missing (Debian, Ubuntu: sudo apt-get install$missing; macOS: brew install$missing)"
    return
  fi
  say "installing$missing with apt-get …"
  export DEBIAN_FRONTEND=noninteractive
  # shellcheck disable=SC2086 # a list of names
  { apt-get install -y $missing || { apt-get update && apt-get install -y $missing; }; } >"$log" 2>&1 ||
    fail "apt-get could not install$missing, see above"
}

missing=
for program in git tmux; do
  command -v "$program" >/dev/null || missing="$missing $program"
done
# `setup.sh browser`: for the tests of the control room, a Chromium as well.
if [ "${1-}" = browser ] && [ -z "${ORC_CHROMIUM-}" ]; then
  command -v chromium >/dev/null || command -v google-chrome >/dev/null || missing="$missing chromium"
fi

if [ -n "$missing" ] || ! up_to_date; then
  mkdir -p .cache
  take_lock
  : >"$log"
  [ -z "$missing" ] || install_programs
  up_to_date || install_packages # or the set-up we waited for has done it
fi
[ "$stamp" -nt package-lock.json ] || touch "$stamp" # the same lockfile, written again by git
