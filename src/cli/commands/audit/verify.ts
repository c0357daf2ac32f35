import { closeSync, createReadStream, openSync, readSync } from 'node:fs'
import type { PublicHead } from '../../../audit/public-trail.ts'
import { AppError } from '../../../base/errors.ts'
import { onlineOrOffline } from '../../connection/online-or-offline.ts'
import { exitCode } from '../../exit-code.ts'
import { complain, paint, plain, print, printJson } from '../../output/print.ts'
import { showWorking } from '../../output/progress.ts'
import type { Invocation, Verb } from '../../verb.ts'
import { type ExportVerdict, verifyExport } from './export-file.ts'
import { isPublicFile, type PublicVerdict, verifyPublic } from './public-file.ts'

export const verb: Verb = {
  name: 'audit verify',
  summary: 'check that no entry was changed, removed, reordered or truncated',
  details:
    'Asks the running service, or reads the store while none runs; also compares every message with its entry.\n' +
    'With FILE it checks a file that `orc audit export` wrote, including the head in its last line. Somebody who can\n' +
    'write the file could truncate it and rewrite that line, so compare the printed head with another copy.\n' +
    'Public trails (`orc audit export --public`, any format) need no service and no team. --extends also checks that an\n' +
    'older copy, or a head you saved (N:HASH), is the beginning of the file.',
  arguments: [{ name: 'FILE', optional: true }],
  options: [
    {
      name: 'extends',
      value: 'OLD',
      summary: 'for a public trail: check that this older file, or head N:HASH, is its beginning',
    },
  ],
  examples: [
    'orc audit verify',
    'orc audit verify audit.jsonl',
    'orc audit verify trail.html --extends trail-may.html',
  ],

  async run(invocation) {
    const working = showWorking('checking the audit')
    const verdict = await verdictOf(invocation).finally(working.end)
    if (invocation.json) printJson(verdict)
    else if (verdict.ok) {
      print(`${paint('green', 'ok')}  ${plain(verdict.message)}`)
      const { head } = verdict
      if (head !== undefined)
        print(`head: ${'n' in head ? `line ${head.n}` : `entry ${head.seq}`}, ${head.hash}`)
    } else complain(`${paint('red', 'bad', 'err')}  ${plain(verdict.message)}`)
    return exitCode(verdict.ok ? 'ok' : 'error')
  },
}

async function verdictOf({ words, location, option }: Invocation): Promise<ExportVerdict | PublicVerdict> {
  const [file] = words
  const older = option('extends')
  if (file !== undefined && isPublicFile(firstLine(file)))
    return await verifyPublic(
      createReadStream(file, 'utf8'),
      older === undefined ? undefined : await headOf(older),
    )
  if (older !== undefined) {
    throw new AppError('USAGE', '--extends needs a public trail', {
      hint: 'orc audit export --public writes one.',
    })
  }
  if (file !== undefined) return await verifyExport(createReadStream(file, 'utf8'))
  return await onlineOrOffline<ExportVerdict>(
    location,
    (client) => client.verifyAudit(),
    ({ verifyAudit }) => verifyAudit(),
  )
}

/** The head of an older copy, which must itself be valid. */
async function headOf(older: string): Promise<PublicHead> {
  const said = /^(\d{1,15}):([0-9a-f]{64})$/.exec(older)
  if (said !== null) return { n: Number(said[1]), hash: said[2]! }
  const verdict = await verifyPublic(createReadStream(older, 'utf8'))
  if (verdict.head !== undefined) return verdict.head
  throw new AppError('INVALID_REQUEST', `${older}: ${verdict.message}`)
}

function firstLine(file: string): string {
  const descriptor = openSync(file, 'r')
  try {
    const bytes = Buffer.alloc(400)
    return bytes.toString('utf8', 0, readSync(descriptor, bytes)).split('\n')[0]!
  } finally {
    closeSync(descriptor)
  }
}
