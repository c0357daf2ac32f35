# Adds up the counts and draws the ten most used words.
set -e
export LC_ALL=C
cat inbox/first/counts.txt inbox/second/counts.txt inbox/third/counts.txt |
  awk '{ sum[$2] += $1 } END { for (word in sum) print sum[word] "\t" word }' |
  sort -k1,1nr -k2 | head -n 10 > outbox/top.txt
{
  echo '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 400 220" font-family="sans-serif" font-size="13">'
  awk '{ if (NR == 1) most = $1
         printf "<text x=\"90\" y=\"%d\" text-anchor=\"end\">%s</text>", NR * 20 + 4, $2
         printf "<rect x=\"100\" y=\"%d\" width=\"%d\" height=\"14\" fill=\"#1e5fb3\"/>\n", NR * 20 - 7, $1 * 260 / most }' outbox/top.txt
  echo '</svg>'
} > outbox/chart.svg
echo "Drew the ten most used words; the first is \"$(head -n 1 outbox/top.txt | cut -f 2)\"." > outbox/summary.md
