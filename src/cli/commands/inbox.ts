import type { Client } from '../../client/client.ts'
import { openClient } from '../connect.ts'
import { untilInterrupted } from '../following.ts'
import { complain, paint, print, printJson } from '../output.ts'
import { type HumanRequest, requestText } from '../request-text.ts'
import type { Verb } from '../verb.ts'

export const verb: Verb = {
  name: 'inbox',
  group: 'People',
  summary: 'what waits for a person: held commands, parked conversations, questions',
  options: [
    { name: 'all', summary: 'decided ones as well' },
    { name: 'follow', short: 'f', summary: 'stay, and show new ones as they come' },
  ],
  examples: ['orc inbox', 'orc inbox --follow', 'orc inbox --all --json'],
  async run({ place, flag, json }) {
    const client = await openClient(place)
    const state = flag('all') ? 'all' : 'open'
    const show = (request: HumanRequest) => (json ? printJson(request) : print(requestText(request)))
    if (!flag('follow')) {
      const { requests } = await client.humanRequests({ state })
      requests.forEach(show)
      if (requests.length === 0 && !json) complain(paint('dim', 'Nothing waits for a person.', 'err'))
      return 0
    }
    return await untilInterrupted((signal) => follow(client, state, show, signal))
  },
}

/** The place in the log is taken before the list, so that nothing between the two is missed. */
async function follow(
  client: Client,
  state: 'open' | 'all',
  show: (one: HumanRequest) => void,
  signal: AbortSignal,
) {
  let after = 0
  for await (const entry of client.audit({ limit: 1 }, { signal })) after = entry.seq
  const shown = new Map<string, string>()
  async function showNew() {
    const { requests } = await client.humanRequests({ state })
    for (const request of requests) {
      if (shown.get(request.id) === request.state) continue
      shown.set(request.id, request.state)
      show(request)
    }
  }
  await showNew()
  for await (const entry of client.events({ after, signal }))
    if (entry.type.startsWith('human.')) await showNew()
}
