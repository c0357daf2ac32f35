/** Watches for evidence that the program accepted a turn. */
import type { DeliveryResult, Turn } from '../../runtimes/runtime.ts'
import type { Patterns } from './patterns.ts'

export interface EvidenceWatch {
  readonly evidence: Promise<DeliveryResult>
  readonly isGiven: boolean
  line(text: string): void
  /** The program shows that it works, or its prompt again. */
  state(seen: 'busy' | 'idle'): void
  /** Ends the watch, whatever comes later. */
  give(result: DeliveryResult): void
}

const FRAME = /\[ORCHUB MESSAGE \S+\]/
export const FRAME_END = /\[END ORCHUB MESSAGE \S+\]/

/**
 * Tells for each line whether it is the program's own: our text comes back as its echo, and may contain
 * anything.
 */
export function createFrameFilter(): (line: string) => boolean {
  let isInFrame = false
  return (line) => {
    if (FRAME_END.test(line)) isInFrame = false
    else if (FRAME.test(line)) isInFrame = true
    return !isInFrame
  }
}

/**
 * Uses the `submitted` pattern with each message's id. Without one, a program that showed the text and then
 * its busy pattern has accepted it: the echo proves that the text arrived, and leaving the prompt that Enter
 * did. Neither alone proves anything, so anything else stays uncertain. For a turn without ids, which is
 * never located later, the prompt below the echo suffices as well.
 */
export function watchEvidence(turn: Turn, patterns: Patterns): EvidenceWatch {
  const { promise: evidence, resolve } = Promise.withResolvers<DeliveryResult>()
  /** Created with the first line: until then the turn is on its way and must not be delayed. */
  let awaited: Map<string, RegExp> | undefined
  const isByPattern = turn.ids.length > 0 && patterns.hasSubmitted
  const lastLine = turn.text.trimEnd().split('\n').at(-1)!.trim()
  const isProgramsOwn = createFrameFilter()
  let isEchoed = false
  let isGiven = false

  function give(result: DeliveryResult) {
    isGiven = true
    resolve(result)
  }

  return {
    evidence,
    get isGiven() {
      return isGiven
    },
    line(text) {
      if (lastLine !== '' && text.includes(lastLine)) isEchoed = true
      if (!isProgramsOwn(text) || !isByPattern) return
      awaited ??= new Map(turn.ids.map((id) => [id, patterns.submitted(id)!]))
      for (const [id, pattern] of awaited) if (pattern.test(text)) awaited.delete(id)
      if (awaited.size > 0) return
      give({ state: 'submitted', evidence: `the pane shows ${JSON.stringify(text.trim().slice(0, 200))}` })
    },
    state(seen) {
      if (isByPattern || !isEchoed || (seen === 'idle' && turn.ids.length > 0)) return
      const then = seen === 'busy' ? 'that the program is busy' : 'its prompt'
      give({ state: 'submitted', evidence: `the pane shows the text, and then ${then}` })
    },
    give,
  }
}
