import { describeChats } from './chat.ts';

describeChats(['5.0.277']);
