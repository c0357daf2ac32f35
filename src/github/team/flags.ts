import { hash } from 'node:crypto'
import type { Tx } from '../../store/store.ts'
import { unfitFlag } from '../core/conduct.ts'
import { type Asked, enveloped } from '../core/report.ts'
import { insertConduct } from '../store/conduct.ts'
import { encodeTeamMessage, readTeamMessage } from '../wire/codec.ts'

export interface Flagged {
  readonly asked: Asked
  readonly repository: string
  readonly flags: readonly Record<string, unknown>[]
}

/** One for each flag of each work, however often it is said. The audit is not told (C12). */
export async function keepFlags(
  tx: Tx,
  redact: (text: string) => string,
  { asked, repository, flags }: Flagged,
): Promise<void> {
  for (const [index, flag] of flags.entries()) {
    await insertConduct(tx, {
      id: hash('sha256', `conduct/${asked.delegation}/${index}`).slice(0, 32),
      repository,
      number: asked.number ?? null,
      flag: redact(textOf(flag, asked, index)),
    })
  }
}

function textOf(flag: Record<string, unknown>, asked: Asked, index: number): string {
  const read = readTeamMessage(whole(flag, asked, index))
  if (read.ok) return encodeTeamMessage(read.message)
  const unfit = readTeamMessage(whole(unfitFlag(flag), asked, index))
  if (!unfit.ok) throw new Error(`a flag of our own does not fit: ${unfit.problem}`)
  return encodeTeamMessage(unfit.message)
}

function whole(flag: Record<string, unknown>, asked: Asked, index: number): Record<string, unknown> {
  return {
    privacy_level: 'PRIVATE_TO_MODERATORS',
    ...enveloped(flag, asked, index),
    message_type: 'coc_violation_flag',
    from_agent: asked.role,
  }
}
