import { CommandExecution, type Item, type TurnRecord } from './records.ts'

/** The running turn, its running commands, and how turns end. */
export interface CodexTurns {
  readonly active: string | undefined
  began(turnId: string): void
  ended(turn: TurnRecord): void
  /** No notification for a while. */
  forget(): void
  /** How that turn ends; never resolves for a turn that is not running. */
  untilEnded(turnId: string): Promise<TurnRecord>
  itemBegan(turnId: string, item: Item): void
  itemEnded(item: Item): void
  /** An item that has started and not ended. */
  item(id: string): Item | undefined
  /**
   * Terminals of this turn's running commands, and of those it starts from now on: a notification may be
   * under way.
   */
  terminalsOf(turnId: string): ReadonlySet<string>
}

export function createTurns(): CodexTurns {
  let active: string | undefined
  let lastEnded: string | undefined
  const waiting = new Map<string, ((turn: TurnRecord) => void)[]>()
  const open = new Map<string, { turnId: string; item: Item }>()
  /** By turn, in the order of the requests. */
  const terminals = new Map<string, Set<string>>()

  return {
    get active() {
      return active
    },
    began(turnId) {
      // A list of turns can be overtaken by the notification of a turn's end.
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
