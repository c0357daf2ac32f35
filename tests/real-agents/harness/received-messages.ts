import type { ModelServer, Recorded } from '../../fakes/model-server/model-server.ts'

/** Programs take their time on a busy machine. */
const PATIENCE_MS = 120_000

const marker = (id: string) => `[ORCHUB MESSAGE ${id}]`

/** The prompts that an agent's model received. */
export function receivedBy(model: ModelServer, agent: string) {
  const calls = () => model.calls(agent)
  /** Programs ask their model for titles and suggestions too, and quote the conversation in it. */
  const ownCalls = () => calls().filter((call) => call.request?.side === false)
  const count = ({ body }: Recorded, id: string) => body.split(marker(id)).length - 1
  return {
    /** The first call, past or to come, whose new words hold that message. */
    message: (id: string): Promise<Recorded> =>
      model.waitFor(
        (call) =>
          call.agent === agent && call.request?.side === false && call.request.userText.includes(marker(id)),
        PATIENCE_MS,
      ),
    text: (words: string): Promise<Recorded> =>
      model.waitFor(
        (call) => call.agent === agent && call.request?.side === false && call.body.includes(words),
        PATIENCE_MS,
      ),
    /** Number of occurrences in the conversation of the last request. */
    times: (id: string): number => count(ownCalls().at(-1)!, id),
    /** Number of occurrences in each call, for the message of a failed test. */
    history: (id: string): string =>
      calls()
        .map((call) => `${call.request?.side === false ? 'own' : 'side'} call: ${count(call, id)}`)
        .join(', '),
    last: (): Recorded => calls().at(-1)!,
  }
}
