import { createReadStream } from 'node:fs'
import { verifyAudit } from '../../engine/audit-check.ts'
import { type ExportVerdict, verifyExport } from '../audit-file.ts'
import { exitCode } from '../exit-code.ts'
import { complain, paint, plain, print, printJson } from '../output.ts'
import { showWorking } from '../progress.ts'
import { reach } from '../reach.ts'
import type { Invocation, Verb } from '../verb.ts'

export const verb: Verb = {
  name: 'audit verify',
  group: 'Look',
  summary: 'check that no entry was changed, removed, reordered or cut off',
  details:
    'Asks the running service, or reads the store itself when none runs; every message is compared with its entry.\n' +
    'With FILE it checks what `orc audit export` wrote, its last line included, which tells the head. Whoever can\n' +
    'write the file could cut it and write that line anew: compare the head that is shown with another copy.',
  arguments: [{ name: 'FILE', optional: true }],
  examples: ['orc audit verify', 'orc audit verify audit.jsonl'],

  async run(invocation) {
    const working = showWorking('checking the audit')
    const verdict = await verdictOf(invocation).finally(working.end)
    if (invocation.json) printJson(verdict)
    else if (verdict.ok) {
      print(`${paint('green', 'ok')}  ${plain(verdict.message)}`)
      if (verdict.head !== undefined) print(`head: entry ${verdict.head.seq}, ${verdict.head.hash}`)
    } else complain(`${paint('red', 'bad', 'err')}  ${plain(verdict.message)}`)
    return exitCode(verdict.ok ? 'ok' : 'error')
  },
}

async function verdictOf({ words, place }: Invocation): Promise<ExportVerdict> {
  const [file] = words
  if (file !== undefined) return await verifyExport(createReadStream(file, 'utf8'))
  return await reach<ExportVerdict>(
    place,
    (client) => client.verifyAudit(),
    ({ store, witness }) => verifyAudit(store, witness),
  )
}
