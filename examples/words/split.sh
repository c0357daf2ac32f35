# Cuts the text into three parts at the ends of lines.
set -e
lines=$(wc -l < inbox/text.txt)
awk -v each=$(((lines + 2) / 3)) '{ print > ("outbox/part-" int((NR - 1) / each) + 1 ".txt") }' inbox/text.txt
echo "Cut $lines lines into three parts." > outbox/summary.md
