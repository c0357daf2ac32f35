import type { ModelReply, ModelRequest, Player, ToolCall } from '../../fakes/model-server/play.ts'

type Reply = ModelReply | Promise<ModelReply> | ((request: ModelRequest) => ModelReply)

/** A command as the model sends it: its type, its fields, and which of them is the body. */
export type Saying = (type: string, fields: Readonly<Record<string, string>>, body?: string) => Command

interface Command {
  readonly text?: string
  readonly call?: { readonly type: string; readonly input: object }
}

/**
 * Scripts the model: it gives each scripted reply once, to the first prompt that contains its words, from the named agent
 * or from any. Other prompts get a reply without consequences.
 */
export function createModelScript() {
  let entries: { agent: string | undefined; words: string; reply: Reply }[] = []

  const play: Player = (request) => {
    if (request.side || request.userText === '') return undefined
    // Interrupted prompts stay in the conversation: only the last one counts.
    const entry = entries.find(
      ({ agent, words }) =>
        (agent === undefined || agent === request.agent) && request.prompt.includes(words),
    )
    if (entry === undefined) return undefined
    entries = entries.filter((one) => one !== entry)
    return typeof entry.reply === 'function' ? entry.reply(request) : entry.reply
  }

  return {
    play,
    /** Replies to the next prompt with these words. */
    answer(words: string, reply: Reply) {
      entries.push({ agent: undefined, words, reply })
    },
    /** Replies to the agent's next prompt with these words. */
    when(agent: string, words: string, reply: Reply) {
      entries.push({ agent, words, reply })
    },
    /** The model stays silent, and its agent busy, until the returned function is called. */
    hold(words: string, agent?: string): (reply: ModelReply) => void {
      const { promise, resolve } = Promise.withResolvers<ModelReply>()
      entries.push({ agent, words, reply: promise })
      return resolve
    },
    /** Entries that were never used. A test that leaves some did not test its subject. */
    unused: () => entries.map(({ agent, words }) => `${agent} ${words}`),
    clear() {
      entries = []
    },
  }
}

export const byTool: Saying = (type, input) => ({ call: { type, input } })

export const byXml: Saying = (type, fields, body) => {
  const attributes = Object.entries(fields)
    .filter(([field]) => field !== body)
    .map(([field, value]) => ` ${field}="${value}"`)
  return {
    text: `<orc-command name="${type}"${attributes.join('')}>${fields[body ?? ''] ?? ''}</orc-command>`,
  }
}

/** The seed's own notation, at the beginning of a line (S2.2 to S2.7). */
export const byJson: Saying = (type, fields) => ({
  text: JSON.stringify({ type: type.toUpperCase(), ...fields }),
})

/** Turns commands into an answer. A program offers the tools under a name of its own, an agent that is a model as they are. */
export function says(...commands: readonly Command[]): (request: ModelRequest) => ModelReply {
  return ({ tools }) => ({
    text: ['I go on.', ...commands.flatMap(({ text }) => (text === undefined ? [] : [text]))].join('\n'),
    toolCalls: commands.flatMap(({ call }): ToolCall[] => {
      if (call === undefined) return []
      // Codex has tools of its own with such names, beside those of the server.
      const isOwn = tools.some(({ name }) => name === call.type) && !tools.some(({ namespace }) => namespace)
      return [isOwn ? { name: call.type, input: call.input } : { mcp: call.type, input: call.input }]
    }),
  })
}
