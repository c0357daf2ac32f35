import { backoff, wait } from '../../../client/backoff.ts'
import type { Client } from '../../../client/client.ts'
import { isTemporary } from '../../../client/transport.ts'
import { lastSequence, openClient } from '../../connection/client.ts'
import { print, printJson } from '../../output/print.ts'
import { type HumanRequest, requestText } from '../../output/request-text.ts'
import { untilInterrupted } from '../../signals.ts'
import type { Verb } from '../../verb.ts'

export const verb: Verb = {
  name: 'inbox',
  summary: 'show what needs your attention: approvals, questions, escalations',
  options: [
    { name: 'all', summary: 'include decided requests' },
    { name: 'follow', short: 'f', summary: 'keep running and show new requests' },
  ],
  examples: ['orc inbox', 'orc inbox --follow', 'orc inbox --all --json'],
  async run({ location, flag, json, showAll }) {
    const client = await openClient(location)
    const state = flag('all') ? 'all' : 'open'
    const show = (request: HumanRequest) => (json ? printJson(request) : print(requestText(request)))
    if (!flag('follow')) {
      const { requests } = await client.humanRequests({ state })
      const text = (all: readonly HumanRequest[]) => all.map(requestText).join('\n')
      return showAll(requests, text, 'Nothing needs your attention.')
    }
    return await untilInterrupted((signal) => follow(client, state, show, signal))
  },
}

async function follow(
  client: Client,
  state: 'open' | 'all',
  show: (one: HumanRequest) => void,
  signal: AbortSignal,
) {
  const after = await lastSequence(client, signal)
  const shown = new Map<string, string>()
  function showIfNew(request: HumanRequest) {
    const now = JSON.stringify([request.state, request.action?.hash, request.approvals.length])
    if (shown.get(request.id) === now) return
    shown.set(request.id, now)
    if (state === 'all' || request.state === 'open') show(request)
  }
  const { requests } = await client.humanRequests({ state })
  requests.forEach(showIfNew)
  for await (const { type, data } of client.events({ after, signal })) {
    if (type.startsWith('human.') && typeof data.request_id === 'string') {
      showIfNew(await fetchRequest(client, data.request_id, signal))
    }
  }
}

/** Retries, because the service may restart between an event and reading its request. */
async function fetchRequest(client: Client, id: string, signal: AbortSignal): Promise<HumanRequest> {
  for (let failures = 0; ; failures++) {
    try {
      return await client.humanRequest(id)
    } catch (error) {
      if (!isTemporary(error) || signal.aborted) throw error
      await wait(backoff(failures), signal)
    }
  }
}
