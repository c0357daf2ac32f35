import type { BodyOf } from '../../../api/contract.ts'
import type { Receipt } from '../../../protocol/receipt.ts'
import { openClient } from '../../connection/client.ts'
import { usage } from '../../errors.ts'
import { paint, print, printJson } from '../../output/print.ts'
import { showAnyReceipt } from '../../output/receipt-text.ts'
import { type HumanRequest, missingText } from '../../output/request-text.ts'
import type { Invocation, Verb } from '../../verb.ts'

/** Sends a person's decision. The exit code says whether it was accepted, not how the held command ended. */
export async function giveVerdict(
  { location, json }: Pick<Invocation, 'location' | 'json'>,
  id: string,
  verdict: BodyOf<'decide'>,
): Promise<number> {
  const client = await openClient(location)
  const answer = await client.decide(id, verdict)
  if (json) printJson(answer)
  else {
    print(outcomeText(answer.request))
    const receipt = answer.receipt as Receipt | undefined
    if (receipt !== undefined && !isToldAlready(receipt, answer.request)) showAnyReceipt(receipt, false)
  }
  return 0
}

/** The first line already says that the asker is notified. */
function isToldAlready(receipt: Receipt, { asker }: HumanRequest): boolean {
  return receipt.status === 'ok' && receipt.result === `${asker} is told`
}

function outcomeText(request: HumanRequest): string {
  const { id, state, asker } = request
  if (state === 'open') return `${id} is still ${paint('yellow', 'open')}: ${missingText(request)}`
  return `${id} is ${state}; ${asker} is notified`
}

export const approve: Verb = {
  name: 'approve',
  summary: 'approve a request: run the held command, accept the result',
  arguments: [{ name: 'ID' }],
  options: [
    { name: 'comment', value: 'TEXT', summary: 'a comment for the asker' },
    {
      name: 'hash',
      value: 'HASH',
      summary: 'the hash of the command you saw; needed if somebody has changed it',
    },
  ],
  examples: ['orc approve req_3', 'orc approve req_3 --comment "go ahead, but slowly"'],
  run(invocation) {
    const comment = invocation.option('comment')
    const hash = invocation.option('hash')
    return giveVerdict(invocation, invocation.words[0]!, {
      decision: 'approve',
      ...(comment === undefined ? {} : { comment }),
      ...(hash === undefined ? {} : { hash }),
    })
  },
}

export const reject: Verb = {
  name: 'reject',
  summary: 'reject a request: refuse the held command',
  arguments: [{ name: 'ID' }],
  options: [{ name: 'comment', value: 'TEXT', summary: 'a comment for the asker' }],
  examples: ['orc reject req_3', 'orc reject req_3 --comment "not before Monday"'],
  run(invocation) {
    const comment = invocation.option('comment')
    return giveVerdict(invocation, invocation.words[0]!, {
      decision: 'reject',
      ...(comment === undefined ? {} : { comment }),
    })
  },
}

export const modify: Verb = {
  name: 'modify',
  summary: 'change fields of a held command and approve it; the asker sees the change',
  details:
    "The changed command must be valid and is checked again by the asker's rules. If several people must approve, this is\n" +
    'the first approval of the changed command. FIELD= clears an optional field.',
  arguments: [{ name: 'ID' }, { name: 'FIELD=VALUE', rest: true }],
  options: [
    { name: 'comment', value: 'TEXT', summary: 'a comment for the asker' },
    {
      name: 'hash',
      value: 'HASH',
      summary: 'the hash of the command you saw; needed if somebody else has changed it',
    },
  ],
  examples: [
    'orc modify req_3 content="Please review it today."',
    'orc modify req_3 priority=normal title= --comment "no need to hurry"',
  ],
  run(invocation) {
    const [id, ...changes] = invocation.words
    const comment = invocation.option('comment')
    const hash = invocation.option('hash')
    return giveVerdict(invocation, id!, {
      decision: 'modify',
      fields: Object.fromEntries(changes.map(readChange)),
      ...(comment === undefined ? {} : { comment }),
      ...(hash === undefined ? {} : { hash }),
    })
  },
}

/** `in-reply-to` and `in_reply_to` name the same field, as everywhere. */
function readChange(word: string): [field: string, value: string] {
  const [, name, value] = /^([A-Za-z][\w-]*)=(.*)$/s.exec(word) ?? []
  if (name !== undefined) return [name.replaceAll('-', '_').toLowerCase(), value!]
  throw usage(
    `"${word}" is not a change`,
    'Write FIELD=VALUE, such as priority=normal; orc inbox shows the fields.',
  )
}
