import type { TaskStreamEvent } from '../../api/contract.ts'
import type { RouteHandler } from '../../api/http/call.ts'
import { readableParties } from '../../api/http/permission.ts'
import { readTree } from '../../audit/store.ts'
import { parseId } from '../../base/ids.ts'
import { deliveriesOfTree } from '../../messages/messages.ts'
import { treeOf } from '../store/tasks.ts'
import { openBranch } from './branch.ts'
import { taskEventOf } from './task-event.ts'
import { visibleTask, wireTask } from './tasks.ts'

/** Audit entries per read. */
const PAGE = 1000

/** Everything that happened for a task, in order (S2.18). */
export const traceTask: RouteHandler<'trace'> = async (context, call) => {
  const { store, team } = context.engine
  const top = await visibleTask(context, call)
  const root = parseId('task', top.root)!
  const branch = await openBranch(store, top)
  const parties = readableParties(team(), call)
  const { limit } = call.query
  const steps: TaskStreamEvent[] = []
  let isMore = false
  for (let after = 0; !isMore; ) {
    const page = await readTree(store, root, { after, limit: PAGE })
    for (const entry of page) {
      if (!branch.includes(entry, parties)) continue
      isMore = steps.length === limit
      if (isMore) break
      steps.push(taskEventOf(entry, top.root))
    }
    if (page.length < PAGE) break
    after = page.at(-1)!.seq
  }
  const deliveries = new Map((await deliveriesOfTree(store, root)).map((one) => [one.id, one]))
  const tasks = (await treeOf(store, top.root)).filter((task) => branch.has(task.id, parties))
  return {
    task: wireTask(top),
    tasks: tasks.map(wireTask),
    steps: steps.map((step) => {
      const found = step.type === 'message' ? deliveries.get(step.message_id) : undefined
      return found === undefined ? step : { ...step, delivery: found.state, attempts: found.attempts }
    }),
    more: isMore,
  }
}
