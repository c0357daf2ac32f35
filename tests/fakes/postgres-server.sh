# Runs a PostgreSQL server for as long as its standard input is open, then removes its folder. Whoever holds the
# other end may thus be killed in any way: the server never outlives it.
# $1 the program · $2 a folder of its own, with the cluster in data/ · the rest: options
postgres=$1
home=$2
shift 2
trap '' INT TERM HUP PIPE

start() { "$postgres" -D "$home/data" "$@" >>"$home/log" 2>&1 & }
stop() {
  kill -"$1" "$server"
  wait "$server"
}

start "$@"
server=$!
while read -r command; do
  case $command in
    restart) stop INT ;; # fast: open transactions are rolled back
    crash) stop QUIT ;;  # at once: recovery at the next start
  esac
  start "$@"
  server=$!
  echo started
done
stop QUIT
rm -rf "$home"
