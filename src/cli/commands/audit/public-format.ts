import { type AuditLine, parseLine } from '../../../audit/line.ts'
import { PUBLIC_FORMAT, type PublicHead, type PublicLine } from '../../../audit/public-trail.ts'

/**
 * A file format of the public trail. Each begins with the title and ends with the head, which makes truncation visible.
 * Verification regenerates the file, so the fixed texts must never change.
 */
interface PublicForm {
  begin(title: string): string
  line(line: PublicLine): string
  end(title: string, head: PublicHead): string
}

const HOW =
  "each hash is sha256 over the hash before it, a line end, the line, and a line end; the first one follows that of the title with a line end. 'orc audit verify FILE' does the same."

const text: PublicForm = {
  begin: (title) => `# ${title}\n`,
  line: ({ line }) => `${line}\n`,
  end: (_, { n, hash }) => `# lines ${n} sha256 ${hash}\n`,
}

const UNREADABLE: AuditLine = { at: '', type: '', actor: '', text: '' }

const jsonl: PublicForm = {
  begin: (title) => `${JSON.stringify({ format: title, how: HOW })}\n`,
  line({ n, line, hash }) {
    // A tampered line may not parse; it is written unchanged and fails by its hash.
    const { at, actor, subject, type, text: said, confidence } = parseLine(line) ?? UNREADABLE
    const parts = { at, from: actor, to: subject, kind: type.toUpperCase(), text: said, confidence }
    return `${JSON.stringify({ n, ...parts, line, hash })}\n`
  },
  end: (_, head) => `${JSON.stringify({ head })}\n`,
}

const STYLE = `body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:70rem;padding:0 1rem;color:#1b1f24;background:#fff}
ol{padding-left:3.5rem}li{padding:.15rem 0;border-bottom:1px solid #e5e8eb}li::marker{color:#59636e}
code{font:13px/1.5 ui-monospace,monospace;white-space:pre-wrap;overflow-wrap:anywhere}footer,header p{color:#59636e}
@media(prefers-color-scheme:dark){body{color:#e6edf3;background:#0d1117}li{border-color:#2b323b}footer,header p,li::marker{color:#9198a1}}`

/** A self-contained file without scripts, for any web server. */
const html: PublicForm = {
  begin: (title) =>
    `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><meta name="format" content="${escapeHtml(title)}">
<title>Public audit trail</title><style>${STYLE}</style></head><body>
<header><h1>Public audit trail</h1><p>What the agents were asked, proposed and did${escapeHtml(placeOf(title))}, oldest first. Agents can be wrong.</p></header>
<ol>
`,
  line: ({ n, line, hash }) => `<li id="n${n}" data-hash="${hash}"><code>${escapeHtml(line)}</code></li>\n`,
  end: (_, { n, hash }) =>
    `</ol>\n<footer><p>Lines: <span id="lines">${n}</span>. Head: <code id="head">${hash}</code>.</p><p>To check it: ${escapeHtml(HOW)}</p></footer>\n</body></html>\n`,
}

export const PUBLIC_FORMS: Readonly<Record<string, PublicForm>> = { text, jsonl, html }

function placeOf(title: string): string {
  const repository = title.slice(PUBLIC_FORMAT.length).trim()
  return repository === '' ? '' : ` in ${repository}`
}

const ENTITIES: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' }

function escapeHtml(said: string): string {
  return said.replace(/[&<>"]/g, (character) => ENTITIES[character]!)
}

export function unescapeHtml(said: string): string {
  return said.replace(
    /&(?:amp|lt|gt|quot);/g,
    (entity) => Object.entries(ENTITIES).find(([, written]) => written === entity)![0],
  )
}
