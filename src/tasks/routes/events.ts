import { type RouteHandler, SENT } from '../../api/http/call.ts'
import { formatEvent } from '../../api/http/event-stream.ts'
import { feedEvent } from '../../api/http/feed.ts'
import { follow, PAGE, resumePoint } from '../../api/http/follow.ts'
import { readableParties } from '../../api/http/permission.ts'
import { readTree } from '../../audit/store.ts'
import { parseId } from '../../base/ids.ts'
import { findTask } from '../store/tasks.ts'
import { isEnd } from '../task.ts'
import { openBranch } from './branch.ts'
import { endOf, taskEventOf } from './task-event.ts'
import { visibleTask } from './tasks.ts'

/** Streams the events of a task and all below it, from its beginning to its end. */
export const streamTask: RouteHandler<'taskEvents'> = async (context, call) => {
  const { store, team } = context.engine
  const task = await visibleTask(context, call)
  const branch = await openBranch(store, task)
  const root = parseId('task', task.root)!
  await follow(context, call, {
    after: resumePoint(call) ?? 0,
    read: async (after) => (await readTree(store, root, { after, limit: PAGE })).map(feedEvent),
    render(events) {
      const parties = readableParties(team(), call)
      let text = ''
      for (const { entry } of events) {
        if (!branch.includes(entry, parties)) continue
        const event = taskEventOf(entry, task.root)
        text += formatEvent(event.type, event.seq, JSON.stringify(event))
      }
      return text
    },
    ending: {
      isNear: (events) =>
        events.some(({ entry }) => entry.data?.task_id === task.id && isEndEntry(entry.type)),
      async finalEvent() {
        const ended = await findTask(store, task.id)
        if (ended === undefined || !isEnd(ended.state)) return undefined
        return (position) => formatEvent('end', position, JSON.stringify(endOf(ended, position)))
      },
    },
  })
  return SENT
}

const END_ENTRIES = new Set(['task.completed', 'task.failed', 'task.cancelled', 'task.skipped'])

function isEndEntry(type: string): boolean {
  return END_ENTRIES.has(type)
}
