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
  /** The terminals of commands that this turn began and that still run. */
  terminalsOf(turnId: string): string[]
}

export function createTurns(): Turns {
  let active: string | undefined
  let lastEnded: string | undefined
  const waiting = new Map<string, ((turn: TurnRecord) => void)[]>()
  const open = new Map<string, { turnId: string; item: Item }>()

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
    },
    ended(turn) {
      lastEnded = turn.id
      if (active === turn.id) active = undefined
      for (const resolve of waiting.get(turn.id) ?? []) resolve(turn)
      waiting.delete(turn.id)
    },
    untilEnded(turnId) {
      return new Promise((resolve) => waiting.set(turnId, [...(waiting.get(turnId) ?? []), resolve]))
    },
    itemBegan: (turnId, item) => void open.set(item.id, { turnId, item }),
    itemEnded: (item) => void open.delete(item.id),
    item: (id) => open.get(id)?.item,
    terminalsOf(turnId) {
      return [...open.values()]
        .filter((one) => one.turnId === turnId && one.item.type === 'commandExecution')
        .flatMap(({ item }) => CommandExecution.safeParse(item).data?.processId ?? [])
    },
  }
}
