import { AGENTS, type AgentName, installAgents } from '../../../scripts/install-agents.ts'

export const setup = () => installAgents(Object.keys(AGENTS) as AgentName[])
