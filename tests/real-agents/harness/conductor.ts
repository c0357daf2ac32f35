import type { ModelReply, Player } from '../../fakes/model-server/play.ts'

type Said = ModelReply | Promise<ModelReply>

/**
 * Leads the scripted model through a test: it answers what it was told to, once, when a prompt comes with those
 * words, and waits as long as the test lets it. Everything else gets an answer of no consequence.
 */
export function createConductor() {
  let cues: { words: string; said: Said }[] = []
  /** Tool calls of an answer are followed by its last words. */
  const play: Player = (request) => {
    if (request.side) return undefined
    // Interrupted prompts stay in the conversation: only the last one counts.
    const isNew = request.userText !== ''
    const cue = isNew ? cues.find(({ words }) => request.prompt.includes(words)) : undefined
    if (cue === undefined) return undefined
    cues = cues.filter((one) => one !== cue)
    return cue.said
  }

  return {
    play,
    /** At the next prompt with these words. */
    answer(words: string, said: ModelReply) {
      cues.push({ words, said })
    },
    /** The model is silent, and its agent busy, until it is let go on. */
    hold(words: string): (said: ModelReply) => void {
      const { promise, resolve } = Promise.withResolvers<ModelReply>()
      cues.push({ words, said: promise })
      return resolve
    },
  }
}
