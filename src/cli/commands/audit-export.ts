import { closeSync, fsyncSync, openSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { formatLine } from '../../audit/line.ts'
import type { AuditEntryAnswer } from '../../service/contract.ts'
import { streamAudit, toEntry } from '../../store/audit-log.ts'
import type { Store } from '../../store/store.ts'
import { exportLine } from '../audit-file.ts'
import { complain, printRaw } from '../output.ts'
import type { Place } from '../place.ts'
import { showProgress } from '../progress.ts'
import { reach } from '../reach.ts'
import type { Verb } from '../verb.ts'

const FORMATS = ['jsonl', 'text']

export const verb: Verb = {
  name: 'audit export',
  group: 'Look',
  summary: 'write the whole audit out, to be kept or checked elsewhere',
  options: [
    {
      name: 'output',
      short: 'o',
      value: 'FILE',
      summary: 'into this file, which is there only when it is whole',
    },
    {
      name: 'format',
      value: 'FORMAT',
      summary: 'jsonl (the default, can be verified) or text',
      choices: FORMATS,
    },
  ],
  examples: ['orc audit export -o audit.jsonl', 'orc audit export --format text | less'],

  async run({ place, option }) {
    const render = option('format') === 'text' ? (entry: AuditEntryAnswer) => entry.line : exportLine
    const file = option('output')
    if (file === undefined) {
      await eachEntry(place, (entry) => printRaw(`${render(entry)}\n`))
      return 0
    }
    const count = await writeWhole(file, (write) => eachEntry(place, (entry) => write(`${render(entry)}\n`)))
    complain(`${count} entries in ${file}`)
    return 0
  },
}

/** From the running service, or from the store itself when none runs. */
async function eachEntry(place: Place, take: (entry: AuditEntryAnswer) => void): Promise<void> {
  await reach(
    place,
    async (client) => {
      for await (const entry of client.audit()) take(entry)
    },
    ({ store }) => eachStored(store, take),
  )
}

async function eachStored(store: Store, take: (entry: AuditEntryAnswer) => void): Promise<void> {
  for await (const row of streamAudit(store, {})) {
    const entry = toEntry(row)
    take({ ...entry, data: entry.data ?? {}, line: formatLine(entry) })
  }
}

/** Under another name until it is on disk, so that a half-written file never passes for an export. */
async function writeWhole(
  file: string,
  fill: (write: (text: string) => void) => Promise<void>,
): Promise<number> {
  const temporary = `${file}.${process.pid}.part`
  const descriptor = openSync(temporary, 'wx', 0o600)
  const progress = showProgress('entries')
  let count = 0
  try {
    await fill((text) => {
      writeFileSync(descriptor, text)
      count += 1
      progress.update(count)
    })
    fsyncSync(descriptor)
    closeSync(descriptor)
    renameSync(temporary, file)
  } catch (error) {
    rmSync(temporary, { force: true })
    throw error
  } finally {
    progress.end()
  }
  return count
}
