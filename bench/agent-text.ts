/**
 * Text as coding agents write it: prose with inline code, lists, tables, fenced code in several languages, tool output,
 * some of it not in ASCII; and commands, in all three notations. The order is random, but the same in every run.
 */
const PASSAGES = [
  `I've read through the authentication module. The session handling in \`src/auth/session.ts\` looks sound, but the
token refresh has a race: two requests that arrive while the token is expired both start a refresh, and the second one
invalidates the first. That explains the intermittent 401s in the log.

`,
  `Here's what I'm going to do:

1. Add a single-flight guard around \`refreshToken()\`, so that concurrent callers share one promise.
2. Write a regression test that fires 50 requests at an expired token and expects exactly one refresh.
3. Update the changelog and \`docs/auth.md\`.

Let me start with the guard.

`,
  `\`\`\`ts
let pending: Promise<Token> | undefined

export function refreshToken(client: Client): Promise<Token> {
  pending ??= client
    .post<Token>('/oauth/token', { grant_type: 'refresh_token', refresh_token: client.refresh })
    .finally(() => {
      pending = undefined
    })
  return pending
}

export async function withToken<T>(client: Client, call: (token: Token) => Promise<T>): Promise<T> {
  const token = isExpired(client.token) ? await refreshToken(client) : client.token
  return call(token)
}
\`\`\`

`,
  `The test passes now, and fails without the guard (I checked by reverting it). Running the whole suite:

\`\`\`
$ npm test

 ✓ tests/auth/session.test.ts (14 tests) 212ms
 ✓ tests/auth/refresh.test.ts (9 tests) 388ms
 ✓ tests/http/retry.test.ts (22 tests) 1204ms
 ❯ tests/http/proxy.test.ts (7 tests | 1 failed) 640ms
   → expected 'http://127.0.0.1:8080' to be undefined

 Test Files  1 failed | 3 passed (4)
      Tests  1 failed | 51 passed (52)
   Duration  2.91s
\`\`\`

The proxy failure isn't related: it also fails on \`main\`, because the environment sets \`HTTP_PROXY\`.

`,
  `**Findings so far**

| file | problem | severity |
|---|---|---|
| \`src/db/pool.ts\` | connections are not released when a query throws | high |
| \`src/db/migrate.ts\` | no lock, so two instances may migrate at once | high |
| \`src/api/users.ts\` | N+1 query in \`listUsers\` | medium |
| \`src/api/search.ts\` | unescaped \`%\` in a LIKE pattern | low |

I'd fix the first two before the release; the others can wait.

`,
  `\`\`\`python
def parse_header(line: bytes) -> tuple[str, str]:
    """Split a header line. Raises ValueError if there is no colon."""
    name, sep, value = line.partition(b":")
    if not sep:
        raise ValueError(f"malformed header: {line!r}")
    return name.decode("ascii").strip().lower(), value.decode("latin-1").strip()


def parse_headers(lines: Iterable[bytes]) -> dict[str, list[str]]:
    headers: dict[str, list[str]] = defaultdict(list)
    for line in lines:
        if line in (b"\\r\\n", b"\\n", b""):
            break
        name, value = parse_header(line)
        headers[name].append(value)
    return headers
\`\`\`

`,
  `That's a subtle one. When \`limit\` is 0 the loop never runs, so \`last\` stays \`undefined\` and we fall through to the
\`else\` branch, which assumes at least one row. The fix is a one-liner (\`if (rows.length === 0) return []\`), but the
callers deserve a look too: \`exportCsv\`, \`exportJson\` and the nightly report all pass user input straight through.

`,
  `\`\`\`diff
--- a/src/db/pool.ts
+++ b/src/db/pool.ts
@@ -41,9 +41,12 @@ export class Pool {
   async run<T>(work: (connection: Connection) => Promise<T>): Promise<T> {
     const connection = await this.acquire()
-    const result = await work(connection)
-    this.release(connection)
-    return result
+    try {
+      return await work(connection)
+    } finally {
+      this.release(connection)
+    }
   }
\`\`\`

`,
  `Next I looked at the memory growth you saw overnight. The heap snapshot shows ≈1.2 million retained \`Timeout\` objects,
all reachable from \`Scheduler#queue\`. They're cancelled, but \`cancel()\` only sets a flag; nothing removes them until
they're due – and some are due in 30 days. Two options:

- remove them eagerly (needs an index by id, \`O(log n)\`), or
- sweep once a minute (simpler, but memory grows between sweeps).

I prefer the first. It's about 20 lines, and \`heap.test.ts\` already covers the data structure underneath.

`,
  `\`\`\`json
{
  "name": "billing-worker",
  "version": "2.14.1",
  "private": true,
  "scripts": { "start": "node dist/main.js", "test": "vitest run", "lint": "biome check ." },
  "dependencies": {
    "fastify": "^5.2.0",
    "pino": "^9.6.0",
    "postgres": "^3.4.5",
    "zod": "^3.24.1"
  },
  "devDependencies": { "typescript": "^5.7.3", "vitest": "^3.0.4", "@biomejs/biome": "^1.9.4" }
}
\`\`\`

`,
  `\`\`\`tsx
export function AgentCard({ agent, onSelect }: Props) {
  const [isOpen, setOpen] = useState(false)
  return (
    <li className={styles.card} data-state={agent.state}>
      <button type="button" onClick={() => onSelect(agent.id)}>
        <h3>{agent.name}</h3>
        <span>{agent.unread > 0 ? \`\${agent.unread} unread\` : 'no mail'}</span>
      </button>
      {isOpen && <Details agent={agent} onClose={() => setOpen(false)} />}
    </li>
  )
}
\`\`\`

`,
  `The reviewer is right about the error handling: swallowing the exception here hides real outages. I'll let it
propagate and turn it into a 503 at the edge, where we know whether the client can retry. The metric
\`http_upstream_errors_total{reason="timeout"}\` will then finally mean something. Über die Zeitzonen sprechen wir später —
they're a separate can of worms.

### What's left

- [ ] the migration lock
- [x] the pool fix, with a test
- [ ] ask Monitor whether the alert threshold should change
- [ ] \`docs/operations.md\`: describe the new 503

`,
  `\`\`\`sql
WITH recent AS (
  SELECT agent_id, max(created_at) AS last_seen
  FROM messages
  WHERE created_at > now() - interval '10 minutes'
  GROUP BY agent_id
)
SELECT a.name, a.state, r.last_seen
FROM agents a
LEFT JOIN recent r ON r.agent_id = a.id
WHERE a.team = $1
ORDER BY r.last_seen DESC NULLS LAST;
\`\`\`

With the index on \`(team, created_at)\` this goes from 840 ms to 3 ms on the staging data.

`,
]

const COMMANDS = [
  `<orc-command name="send_message" from="Developer" to="Reviewer" title="Pool fix ready for review">
The fix for the connection leak is on branch fix/pool-release.

Changed:
- src/db/pool.ts: release in a finally block
- tests/db/pool.test.ts: a query that throws, 100 times

Please check the error path in \`run()\`; I'm not sure about nested transactions.
</orc-command>

`,
  `<orc-command name="mailbox_check"></orc-command>

`,
  `<orc-command name="update_status" status="working" current_task="Fixing the migration lock"/>

`,
  `<orc-command type="send_message">
  <from>Developer</from>
  <to>Monitor</to>
  <title>Alert threshold</title>
  <content>
    The upstream errors are now counted as 503. Should the threshold for
    http_upstream_errors_total stay at 5 a minute?
  </content>
  <priority>high</priority>
</orc-command>

`,
  `{"orc_command": {"type": "send_message", "to": "Master", "title": "Done", "content": "The pool fix is merged.\\nTests: 52 passed."}}

`,
]

/** On average one command per `bytesPerCommand`. */
export function agentText(bytes: number, bytesPerCommand: number): Buffer {
  const random = generator(20_261_115)
  const pick = (texts: readonly string[]) => texts[Math.floor(random() * texts.length)]!
  const parts: string[] = []
  let length = 0
  let commands = 0
  while (length < bytes) {
    const part = length >= (commands + 1) * bytesPerCommand ? pick(COMMANDS) : pick(PASSAGES)
    if (COMMANDS.includes(part)) commands++
    parts.push(part)
    length += Buffer.byteLength(part)
  }
  return Buffer.from(parts.join('')).subarray(0, bytes)
}

/** A small pseudo-random generator (mulberry32), so that every run measures the same text. */
function generator(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}
