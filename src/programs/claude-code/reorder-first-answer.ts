import { z } from 'zod'

/**
 * When Claude Code first writes a transcript, the model's answer may precede its prompt (seen in 2.1.197),
 * because text that waited for the file is written after the text that created it. So an answer at the start
 * of a file is held until the record it follows has been read.
 */
interface FirstAnswerOrder {
  /** True until the conversation's first record is read, and while it is held. */
  readonly isOpen: boolean
  take(line: string): void
  /** Releases the held answer although its prompt has not appeared. When it does, it is already answered. */
  release(): void
  /** The file is read from its start. */
  restart(): void
}

const Link = z.looseObject({
  type: z.string(),
  uuid: z.string(),
  parentUuid: z.string().nullish(),
  isSidechain: z.boolean().optional(),
})

interface FirstAnswerOrderOptions {
  readonly isAtBeginning: boolean
  hear(line: string): void
  /** The record heard last is the one the first answer follows, which was heard before it. */
  onAnsweredBefore(): void
}

export function orderFirstAnswer({
  isAtBeginning,
  hear,
  onAnsweredBefore,
}: FirstAnswerOrderOptions): FirstAnswerOrder {
  let isBeginning = isAtBeginning
  let held: string[] = []
  const heldIds = new Set<string>()
  let follows: string | undefined
  /** The answer was read, but not the record it follows. */
  let isFollowedLate = false

  function hold(line: string, uuid: string) {
    held.push(line)
    heldIds.add(uuid)
  }

  function release() {
    for (const line of held) hear(line)
    held = []
  }

  function hearLate(line: string) {
    const link = readLink(line)
    const goesOn = link?.parentUuid && heldIds.has(link.parentUuid)
    if (goesOn) heldIds.add(link.uuid)
    // The next turn has begun: nothing in it is answered yet.
    if (link?.type === 'assistant' || (goesOn && link.type === 'user')) isFollowedLate = false
    hear(line)
    if (link?.uuid !== follows || !isFollowedLate) return
    isFollowedLate = false
    onAnsweredBefore()
  }

  function begin(line: string, link: z.output<typeof Link>) {
    isBeginning = false
    if (link.type !== 'assistant' || !link.parentUuid) return hear(line)
    follows = link.parentUuid
    hold(line, link.uuid)
  }

  return {
    get isOpen() {
      return isBeginning || held.length > 0
    },
    take(line) {
      if (!isBeginning && held.length === 0) return isFollowedLate ? hearLate(line) : hear(line)
      const link = readLink(line)
      if (link === undefined) return hear(line)
      if (isBeginning) return begin(line, link)
      if (link.parentUuid && heldIds.has(link.parentUuid)) return hold(line, link.uuid)
      // Another answer: the record the first one follows is in no file of ours.
      if (link.type === 'assistant') release()
      hear(line)
      if (link.uuid === follows) release()
    },
    release() {
      if (held.length > 0) isFollowedLate = true
      release()
    },
    restart() {
      isBeginning = true
      isFollowedLate = false
      held = []
      heldIds.clear()
    },
  }
}

function readLink(line: string): z.output<typeof Link> | undefined {
  try {
    const link = Link.safeParse(JSON.parse(line)).data
    return link?.isSidechain === true ? undefined : link
  } catch {
    return undefined
  }
}
