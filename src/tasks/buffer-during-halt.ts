import type { SessionWatch } from '../agents/sessions.ts'
import type { Store } from '../store/store.ts'
import { hasOpenTask, reviewsOf } from './store/tasks.ts'

export interface MeanwhileOptions {
  store: Store
  isHalted(): boolean
  /** It must hear when the halt is over. */
  disturbed(agent: string): void
}

/** What agents do during a halt moves no task: an interrupted turn goes on afterwards, an end is told afterwards. */
export function createMeanwhile(watch: SessionWatch, { store, isHalted, disturbed }: MeanwhileOptions) {
  const ended = new Map<string, () => Promise<void>>()

  function tellLater(agent: string, tell: () => Promise<void>): Promise<void> {
    if (!isHalted()) return tell()
    ended.set(agent, tell)
    return Promise.resolve()
  }

  const meanwhile: SessionWatch = {
    turnBegan: watch.turnBegan,
    async turnEnded(agent, lastWords) {
      if (!isHalted()) return await watch.turnEnded(agent, lastWords)
      const isAwaited = (await hasOpenTask(store, agent)) || (await reviewsOf(store, agent)).length > 0
      if (isAwaited) disturbed(agent)
    },
    exited: (agent, why) => tellLater(agent, () => watch.exited(agent, why)),
    unreachable: (agent, why) => tellLater(agent, () => watch.unreachable(agent, why)),
  }

  return {
    watch: meanwhile,
    goOn() {
      const late = [...ended.values()]
      ended.clear()
      for (const tell of late) void tell()
    },
  }
}
