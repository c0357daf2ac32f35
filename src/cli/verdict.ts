import type { Receipt } from '../model/receipt.ts'
import { openClient } from './connect.ts'
import { print, printJson } from './output.ts'
import { showAnyReceipt } from './receipt-text.ts'
import type { Invocation } from './verb.ts'

/** A person's word on one request. The exit code tells whether it was taken, not what became of the held command. */
export async function giveVerdict(
  { place, json }: Invocation,
  id: string,
  verdict: { decision: 'approve' | 'reject' | 'answer'; comment?: string },
): Promise<number> {
  const client = await openClient(place)
  const answer = await client.decide(id, verdict)
  if (json) printJson(answer)
  else {
    print(`${answer.request.id} is ${answer.request.state}; ${answer.request.asker} is told`)
    if (answer.receipt !== undefined) showAnyReceipt(answer.receipt as Receipt, false)
  }
  return 0
}
