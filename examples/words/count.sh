# Counts the words of inbox/part/ and reports its progress in status.json.
set -e
export LC_ALL=C
started=$(date -u +%FT%TZ)
say() {
  printf '{"state":"%s","started":"%s","progress":{"current_step":"%s","steps_completed":%d,"total_steps":3}}\n' \
    "$1" "$started" "$2" "$3" > status.json.new
  mv status.json.new status.json
}

say running "finding words" 0
cat inbox/part/*.txt | tr -cs '[:alpha:]' '\n' | tr '[:upper:]' '[:lower:]' | grep . > workspace/words.txt
say running "counting" 1
sort workspace/words.txt | uniq -c | sort -k1,1nr -k2 | awk '{ print $1 "\t" $2 }' > outbox/counts.txt
say running "telling" 2
echo "Counted $(wc -l < workspace/words.txt) words, $(wc -l < outbox/counts.txt) different ones." > outbox/summary.md
say completed "done" 3
