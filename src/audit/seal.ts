import type { Seal, SealedEntry } from '../store/store.ts'
import { sealEntry, serializeData } from './chain.ts'
import type { AuditDraft } from './entry.ts'
import type { Redactor } from './redact.ts'
import { mayHoldSecret } from './secrets/suspicion.ts'

/** The only way into the log: redacts, numbers and hashes (C12). */
export function sealWith(redactor: Redactor): Seal {
  const { redact, redactJson } = redactor

  function redacted(draft: AuditDraft, json: string) {
    const dataJson = redactJson(json)
    const clean = { ...draft, actor: redact(draft.actor), text: redact(draft.text) }
    if (draft.subject !== undefined) clean.subject = redact(draft.subject)
    if (dataJson !== json) clean.data = JSON.parse(dataJson) as Record<string, unknown>
    return { clean, dataJson }
  }

  return (drafts, head, time) => {
    const at = new Date(time).toISOString()
    let { seq, hash } = head
    const entries: SealedEntry[] = []
    for (const draft of drafts) {
      const json = serializeData(draft.data)
      const { clean, dataJson } = isHarmless(draft, json)
        ? { clean: draft, dataJson: json }
        : redacted(draft, json)
      seq++
      const sealed = sealEntry(clean, { chain: head.chain, seq, at, prev: hash }, dataJson)
      hash = sealed.entry.hash
      entries.push(sealed)
    }
    return { entries, head: { chain: head.chain, seq, hash } }
  }
}

/** Checks all parts at once: most entries hold nothing like a secret. */
function isHarmless({ actor, subject, text }: AuditDraft, json: string): boolean {
  const all = `${actor}\n${subject}\n${text}\n${json}`
  return !all.includes('\\u') && !mayHoldSecret(all)
}
