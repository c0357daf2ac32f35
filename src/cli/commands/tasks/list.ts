import type { AnswerOf } from '../../../api/contract.ts'
import type { Client } from '../../../client/client.ts'
import { isTemporary } from '../../../client/transport.ts'
import { lastSequence, openClient } from '../../connection/client.ts'
import { canRedraw, openLiveText } from '../../output/layout.ts'
import { paint, print, printJson } from '../../output/print.ts'
import { untilInterrupted } from '../../signals.ts'
import type { Verb } from '../../verb.ts'
import { taskTree } from './show.ts'

type ListedTask = AnswerOf<'tasks'>['tasks'][number]

export const verb: Verb = {
  name: 'task list',
  summary: 'show delegated tasks and their states as a tree',
  options: [
    { name: 'all', summary: 'include ended tasks' },
    { name: 'follow', short: 'f', summary: 'keep running and show each change' },
    { name: 'limit', value: 'N', summary: 'only the newest N tasks (default: 200)' },
  ],
  examples: ['orc task list', 'orc task list --follow', 'orc task list --all --limit 20'],
  async run({ location, flag, given, json, showAll }) {
    const client = await openClient(location)
    const query = given('limit')
    if (flag('follow')) {
      const show = json ? showChanges(printJson) : canRedraw() ? redrawn() : showChanges(showLine)
      return await untilInterrupted((signal) => follow(client, { query, all: flag('all'), show, signal }))
    }
    const { tasks } = await client.tasks({ state: flag('all') ? 'all' : 'open', ...query })
    return showAll(tasks, taskTree, 'There are no open tasks.')
  },
}

interface FollowTaskOptions {
  query: { limit?: string }
  all: boolean
  show(tasks: readonly ListedTask[]): void
  signal: AbortSignal
}

/** Redraw at most this often; people can't follow faster changes. */
const REDRAW_MS = 100

async function follow(client: Client, { query, all, show, signal }: FollowTaskOptions) {
  const after = await lastSequence(client, signal)
  const seen = new Set<string>()
  let isStale = false
  let isLooking = false

  /** Shows trees with open tasks, and those that ended while we followed. */
  async function look() {
    const { tasks } = await client.tasks({ state: 'all', ...query })
    for (const { root, ended_at } of tasks) if (ended_at === undefined) seen.add(root)
    show(all ? tasks : tasks.filter(({ root }) => seen.has(root)))
  }
  async function lookAgain() {
    while (isStale && !signal.aborted) {
      isStale = false
      await look().catch((error: unknown) => {
        if (!isTemporary(error)) throw error
        // The service is restarting.
        isStale = true
      })
      await new Promise((resolve) => setTimeout(resolve, REDRAW_MS))
    }
    isLooking = false
  }

  await look()
  const failed = Promise.withResolvers<never>()
  const changes = async () => {
    for await (const entry of client.events({ after, signal })) {
      if (!entry.type.startsWith('task.')) continue
      isStale = true
      if (isLooking) continue
      isLooking = true
      lookAgain().catch(failed.reject)
    }
  }
  await Promise.race([changes(), failed.promise])
}

function redrawn(): FollowTaskOptions['show'] {
  const live = openLiveText()
  return (tasks) => live.draw(tasks.length === 0 ? paint('dim', 'There are no open tasks.') : taskTree(tasks))
}

/** Shows each task when it first appears and whenever its state changes. */
function showChanges(show: (task: ListedTask) => void): FollowTaskOptions['show'] {
  const shown = new Map<string, string>()
  return (tasks) => {
    for (const task of tasks) {
      const now = `${task.state} ${task.attempt}`
      if (shown.get(task.id) === now) continue
      shown.set(task.id, now)
      show(task)
    }
  }
}

function showLine(task: ListedTask) {
  print(taskTree([task]))
}
