import type { ClientContext } from '@agentclientprotocol/sdk'
import { z } from 'zod'

const Injected = z.object({ outcome: z.literal('injected') })

/** Puts a text into the running turn, by an extension of ACP that some agents have. Resolves false if it did not go. */
export async function steer(agent: ClientContext, sessionId: string, text: string): Promise<boolean> {
  try {
    const answer: unknown = await agent.request('_session/steering', {
      sessionId,
      prompt: [{ type: 'text', text }],
      // Otherwise, between turns, it would begin one of which we know nothing.
      _meta: { steering: { idleBehavior: 'promptRequired' } },
    })
    return Injected.safeParse(answer).success
  } catch {
    return false
  }
}
