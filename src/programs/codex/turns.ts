import { CommandExecution, type Item, type TurnRecord } from './records.ts'

/** Which turn runs, which commands it has running, and how turns end. */
export interface Turns {
  readonly active: string | undefined
  began(turnId: string): void
  ended(turn: TurnRecord): void
  /** Nobody told for a while. */
  forget(): void
  /** How that turn ends; never resolves for one that is not running. */
  untilEnded(turnId: string): Promise<TurnRecord>
  itemBegan(turnId: string, item: Item): void
  itemEnded(item: Item): void
  /** An item that has begun and not ended. */
  item(id: string): Item | undefined
  /** The terminals of commands of this turn that run, and of those that it begins from now on: news of one may be under way. */
  terminalsOf(turnId: string): ReadonlySet<string>
}

export function createTurns(): Turns {
  let active: string | undefined
  let lastEnded: string | undefined
  const waiting = new Map<string, ((turn: TurnRecord) => void)[]>()
  const open = new Map<string, { turnId: string; item: Item }>()
  /** By turn, as they were asked for. */
  const terminals = new Map<string, Set<string>>()

  return {
    get active() {
      return active
    },
    began(turnId) {
      // A list of turns can be overtaken by the news of a turn's end.
      if (turnId !== lastEnded) active = turnId
    },
    forget() {
      active = undefined
      open.clear()
      terminals.clear()
    },
    ended(turn) {
      lastEnded = turn.id
      if (active === turn.id) active = undefined
      for (const resolve of waiting.get(turn.id) ?? []) resolve(turn)
      waiting.delete(turn.id)
      terminals.delete(turn.id)
    },
    untilEnded(turnId) {
      return new Promise((resolve) => waiting.set(turnId, [...(waiting.get(turnId) ?? []), resolve]))
    },
    itemBegan(turnId, item) {
      open.set(item.id, { turnId, item })
      const terminal = terminalOf(item)
      if (terminal !== undefined) terminals.get(turnId)?.add(terminal)
    },
    itemEnded: (item) => void open.delete(item.id),
    item: (id) => open.get(id)?.item,
    terminalsOf(turnId) {
      const known = terminals.get(turnId) ?? new Set<string>()
      terminals.set(turnId, known)
      for (const { turnId: of, item } of open.values()) {
        const terminal = of === turnId ? terminalOf(item) : undefined
        if (terminal !== undefined) known.add(terminal)
      }
      return known
    },
  }
}

function terminalOf(item: Item): string | undefined {
  if (item.type !== 'commandExecution') return undefined
  return CommandExecution.safeParse(item).data?.processId ?? undefined
}
