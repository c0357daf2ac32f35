import type { Receipt } from '../../../model/receipt.ts'
import type { BodyOf } from '../../../service/contract.ts'
import { openClient } from '../../connection/client.ts'
import { paint, print, printJson } from '../../output/print.ts'
import { showAnyReceipt } from '../../output/receipt-text.ts'
import { type HumanRequest, missingText } from '../../output/request-text.ts'
import type { Invocation } from '../../verb.ts'

/** A person's word on one request. The exit code tells whether it was taken, not what became of the held command. */
export async function giveVerdict(
  { place, json }: Pick<Invocation, 'place' | 'json'>,
  id: string,
  verdict: BodyOf<'decide'>,
): Promise<number> {
  const client = await openClient(place)
  const answer = await client.decide(id, verdict)
  if (json) printJson(answer)
  else {
    print(outcomeText(answer.request))
    const receipt = answer.receipt as Receipt | undefined
    if (receipt !== undefined && !isToldAlready(receipt, answer.request)) showAnyReceipt(receipt, false)
  }
  return 0
}

/** That the asker hears of it, which the first line says. */
function isToldAlready(receipt: Receipt, { asker }: HumanRequest): boolean {
  return receipt.status === 'ok' && receipt.result === `${asker} is told`
}

function outcomeText(request: HumanRequest): string {
  const { id, state, asker } = request
  if (state === 'open') return `${id} is still ${paint('yellow', 'open')}: ${missingText(request)}`
  return `${id} is ${state}; ${asker} is told`
}
